/**
 * The deterministic simulator: virtual time, synchronous.
 *
 * SIM1  Time stands still while anything can run. Then it jumps to the next timer. Timers of the same instant fire
 *     together, in the order in which they were set.
 * SIM2  Without a seed, the run is the one that `run` would make if running took no time. With a seed, the next task
 *     among the ready ones of the highest priority is chosen pseudo-randomly.
 * SIM3  The same program, seed and options give exactly the same run.
 */

import { anyObject, callback, integer, integerFrom, readOptions, string } from "../options.ts";
import type { Runnable } from "./effect.ts";
import type { TaskRef } from "./errors.ts";
import { type Ending, endingOf, type SimulationResult } from "./outcome.ts";
import type { Resolver } from "./outside-wait.ts";
import { type ChoiceSource, ReplayedChoices, SeededChoices } from "./random.ts";
import type { LogEntry } from "./scheduler-options.ts";
import { VirtualWorld } from "./virtual-world.ts";

/** Options of `simulate`. */
export interface SimulateOptions {
  /** Chooses the order of the runnable tasks. @defaultValue no seed: first in, first out */
  readonly seed?: number;
  /** Repeats the choices of an earlier run, as `explore` reports them. Cannot be combined with `seed`. */
  readonly replay?: readonly number[];
  /** The largest number of steps; beyond it, the run fails with `StepLimitError`. @defaultValue 100,000,000 */
  readonly maxSteps?: number;
  /** Replaces the promises of `fromPromise`. @defaultValue none: `fromPromise` fails */
  readonly resolver?: Resolver;
  /** Called with each message of `log` when it is written. @defaultValue none */
  readonly onLog?: (message: string, entry: LogEntry) => void;
  /** Called at the end with each failure of a task that no task waited for. @defaultValue the run fails with them */
  readonly onUnhandled?: (error: unknown, task: TaskRef) => void;
  /** The name of the root task. @defaultValue "root" */
  readonly name?: string;
}

export const simulateRules = {
  seed: integer,
  replay: anyObject,
  maxSteps: integerFrom(1),
  resolver: callback,
  onLog: callback,
  onUnhandled: callback,
  name: string,
};

/**
 * Runs the program to its end in virtual time, and returns its value, log, steps and leaks. Throws the error of the
 * program.
 *
 * @example
 * ```ts
 * import { delay, log, simulate } from "slotkeeper/effects";
 *
 * const result = simulate(function* () {
 *   yield* delay(60_000);
 *   yield* log("a minute later");
 * });
 * console.log(result.now, result.log); // 60000 ["a minute later"]
 * ```
 */
export function simulate<T>(program: Runnable<T>, options: SimulateOptions = {}): SimulationResult<T> {
  const given = readOptions(options, simulateRules);
  const ending = simulateToEnd(program, given, choicesOf(given));
  if (ending.failed) throw (ending.result as { error?: unknown }).error;
  return ending.result as SimulationResult<T>;
}

export function choicesOf(options: Pick<SimulateOptions, "seed" | "replay">): ChoiceSource | undefined {
  if (options.seed !== undefined && options.replay !== undefined) {
    throw new TypeError("Expected `seed` or `replay`, got both");
  }
  if (options.replay !== undefined) return new ReplayedChoices(options.replay);
  return options.seed === undefined ? undefined : new SeededChoices(options.seed);
}

export function simulateToEnd<T>(
  program: Runnable<T>,
  options: SimulateOptions,
  choices: ChoiceSource | undefined,
): Ending<T> {
  const world = new VirtualWorld(program, options, choices, options.resolver ?? "refused");
  while (!world.scheduler.isOver) {
    world.scheduler.turns(Number.POSITIVE_INFINITY);
    if (!world.scheduler.isOver) world.moveOn();
  }
  return endingOf(world.scheduler);
}
