/**
 * The simulator for programs that wait for real promises. It runs code that is written with promises on virtual time,
 * under chosen interleavings.
 *
 * SIMASYNC1  Only promise reactions run between two turns. The seed chooses how many, so that a test can observe a
 *     hand-over inside the code under test half way.
 * SIMASYNC2  Time moves when no task is ready and promise reactions have run dry (`TURNS_TO_DRY` in a row woke no
 *     task).
 * SIMASYNC3  If promise reactions have run dry, no timer is set and a promise is still awaited, the run is stuck: no
 *     code is left to settle the promise. This detects a lost wake-up.
 *
 * It does not wait for anything real. A promise that needs a timer of the host or I/O looks like one that is never
 * settled.
 */
import type { Clock } from "../clock.ts";
import { readOptions } from "../options.ts";
import type { Program, Runnable } from "./effect.ts";
import { type Ending, endingOf, resultOf, type SimulationResult } from "./outcome.ts";
import type { ChoiceSource } from "./random.ts";
import { choicesOf, type SimulateOptions, simulateRules, VirtualWorld } from "./simulate.ts";

/** A program that waits for promises, or a function that receives the clock of the simulation and returns one. */
export type AsyncProgram<T> = Runnable<T> | ((clock: Clock) => Program<T>);

/** Options of `simulateAsync`. */
export type SimulateAsyncOptions = Omit<SimulateOptions, "resolver">;

const { resolver: _, ...asyncRules } = simulateRules;

const TURNS_TO_DRY = 64;
/** While tasks are ready, the seed chooses how many promise reactions run between two turns: fewer than this number. */
const CHOSEN_TURNS = 8;

/** Awaiting it takes exactly one turn of promise reactions. */
const reaction = Promise.resolve();

/**
 * Like `simulate`, for programs that wait for real promises. These are awaited in virtual time.
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
  const given = readOptions(options, asyncRules);
  return resultOf(await simulateAsyncToEnd(program, given, choicesOf(given)));
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
      // No await at all for 0, because one await is already a reaction.
      for (let turn = choices?.pick(CHOSEN_TURNS) ?? 0; turn > 0; turn--) await reaction;
    } else if (!scheduler.isOver && !(await ranDry(() => scheduler.ready.size > 0))) world.moveOn();
  }
  return endingOf(scheduler);
}

/** Lets promise reactions run. Returns true as soon as one wakes a task, and false when none does any more. */
async function ranDry(isAwake: () => boolean): Promise<boolean> {
  for (let turn = 0; turn < TURNS_TO_DRY; turn++) {
    if (isAwake()) return true;
    await reaction;
  }
  return isAwake();
}
