/**
 * The deterministic simulator: virtual time, synchronous.
 *
 * SIM1  Time stands still while anything can run, then jumps to the next timer; timers of one instant fire together, in
 *     the order they were set.
 * SIM2  Without a seed the run is the one `run` would make if running took no time. With one, the ready task of the
 *     highest priority that runs next is chosen pseudo-randomly.
 * SIM3  The same program, seed and options give the same run, to the step.
 */

import { anyObject, callback, checkOptions, integer, integerFrom, string } from "../options.ts";
import type { Runnable } from "./effect.ts";
import type { TaskRef } from "./errors.ts";
import { type Ending, endingOf, type SimulationResult } from "./outcome.ts";
import type { Resolver } from "./outside-wait.ts";
import { type ChoiceSource, ReplayedChoices, SeededChoices } from "./random.ts";
import type { LogEntry } from "./scheduler-options.ts";
import { VirtualWorld } from "./virtual-world.ts";

/** Options of `simulate`. */
export interface SimulateOptions {
  /** Chooses among the runnable tasks; without it the order is first in, first out. */
  readonly seed?: number;
  /** Repeats the choices of an earlier run, as `explore` reports them. Not together with `seed`. */
  readonly replay?: readonly number[];
  /** `StepLimitError` beyond this many. */
  readonly maxSteps?: number;
  /** Stands in for the promises of `fromPromise`. */
  readonly resolver?: Resolver;
  /** Gets each message of `log` as it is written. */
  readonly onLog?: (message: string, entry: LogEntry) => void;
  /** Gets the failures of tasks that no task waited for, at the end. @defaultValue the run fails with them */
  readonly onUnhandled?: (error: unknown, task: TaskRef) => void;
  /** The root task's name. */
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
 * Runs the program in virtual time to its end, and returns its value, log, steps and leaks. Throws what the program throws.
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
  checkOptions(options, simulateRules);
  const ending = simulateToEnd(program, options, choicesOf(options));
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
