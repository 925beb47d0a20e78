/**
 * The simulator for programs that wait for real promises: code under test that is written with promises, on virtual
 * time, under chosen interleavings.
 *
 * SIMASYNC1  Only promise reactions run between two turns, and how many is one of the seed's choices: a hand-over inside the
 *     code under test can be caught half way.
 * SIMASYNC2  Time moves when no task is ready and promise reactions have run dry (`TURNS_TO_DRY` in a row woke no task).
 * SIMASYNC3  A world that is dry, without timers, and still waits for a promise is stuck: no code is left to settle it. That is
 *     how a lost wake-up shows.
 *
 * It does not wait for anything real: a promise that needs a host timer or I/O looks like one that is never settled.
 */
import type { Clock } from "../clock.ts";
import { checkOptions } from "../options.ts";
import type { Program, Runnable } from "./effect.ts";
import { type Ending, endingOf, type SimulationResult } from "./outcome.ts";
import type { ChoiceSource } from "./random.ts";
import { choicesOf, type SimulateOptions, simulateRules } from "./simulate.ts";
import { VirtualWorld } from "./virtual-world.ts";

/** A program that waits for promises, or a function that is given the simulation's clock and makes one. */
export type AsyncProgram<T> = Runnable<T> | ((clock: Clock) => Program<T>);

/** Options of `simulateAsync`. */
export type SimulateAsyncOptions = Omit<SimulateOptions, "resolver">;

const { resolver: _, ...asyncRules } = simulateRules;

const TURNS_TO_DRY = 64;
/** While tasks are ready, fewer promise reactions than this run between two of their turns; the seed chooses. */
const CHOSEN_TURNS = 8;

/** Awaiting it takes exactly one turn of promise reactions. */
const reaction = Promise.resolve();

/**
 * As `simulate`, with real promises: those are awaited, in virtual time.
 *
 * @example
 * ```ts
 * import { Semaphore } from "slotkeeper";
 * import { fromPromise, simulateAsync } from "slotkeeper/effects";
 *
 * const { value } = await simulateAsync(function* (clock) {
 *   const db = new Semaphore(1, { clock });
 *   return yield* fromPromise(db.run(() => "done"));
 * });
 * ```
 */
export async function simulateAsync<T>(
  program: AsyncProgram<T>,
  options: SimulateAsyncOptions = {},
): Promise<SimulationResult<T>> {
  checkOptions(options, asyncRules);
  const ending = await simulateAsyncToEnd(program, options, choicesOf(options));
  if (ending.failed) throw (ending.result as { error?: unknown }).error;
  return ending.result as SimulationResult<T>;
}

export async function simulateAsyncToEnd<T>(
  program: AsyncProgram<T>,
  options: SimulateAsyncOptions,
  choices: ChoiceSource | undefined,
): Promise<Ending<T>> {
  const world = new VirtualWorld(program, options, choices, "awaited");
  const { scheduler } = world;
  while (!scheduler.isOver) {
    scheduler.turns(1);
    if (scheduler.ready.size > 0) {
      // No await at all for 0: that would be a reaction already.
      for (let turn = choices?.pick(CHOSEN_TURNS) ?? 0; turn > 0; turn--) await reaction;
    } else if (!scheduler.isOver && !(await ranDry(() => scheduler.ready.size > 0))) world.moveOn();
  }
  return endingOf(scheduler);
}

/** Lets promise reactions run until one wakes a task (true) or none does any more (false). */
async function ranDry(isAwake: () => boolean): Promise<boolean> {
  for (let turn = 0; turn < TURNS_TO_DRY; turn++) {
    if (isAwake()) return true;
    await reaction;
  }
  return isAwake();
}
