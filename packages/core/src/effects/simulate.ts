/**
 * The deterministic simulator: virtual time, synchronous.
 *
 * SIM1  Time stands still while anything can run. Then it jumps to the next timer. Timers of the same instant fire
 *     together, in the order in which they were set.
 * SIM2  Without a seed, the run is the one that `run` would make if running took no time. With a seed, the next task
 *     among the ready ones of the highest priority is chosen pseudo-randomly.
 * SIM3  The same program, seed and options give exactly the same run.
 */

import type { Clock } from "../clock.ts";
import { anyObject, callback, integer, integerFrom, readOptions, string } from "../options.ts";
import type { Runnable } from "./effect.ts";
import type { TaskRef } from "./errors.ts";
import { standstill } from "./lifecycle.ts";
import { type Ending, endingOf, resultOf, type SimulationResult } from "./outcome.ts";
import type { Resolver } from "./outside-wait.ts";
import { toProgram } from "./program.ts";
import { type ChoiceSource, ReplayedChoices, SeededChoices } from "./random.ts";
import { type LogEntry, Scheduler, type SchedulerOptions } from "./scheduler.ts";
import { Callback } from "./task.ts";

const DEFAULT_MAX_STEPS = 100_000_000;

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
  return resultOf(simulateToEnd(program, given, choicesOf(given)));
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

/**
 * The virtual time as a `Clock`, for code in a simulated program. Its timers are due in order with the sleeps of the
 * tasks. Tests without a scheduler use `FakeClock`.
 */
class SchedulerClock implements Clock {
  time = 0;
  scheduler: Scheduler | undefined = undefined;

  now(): number {
    return this.time;
  }

  setTimer(callback: () => void, delayMs: number): Callback {
    const timer = new Callback(callback);
    this.scheduler?.timers.add(timer, this.time + Math.max(0, delayMs));
    return timer;
  }

  clearTimer(timer: unknown): void {
    if (timer instanceof Callback) this.scheduler?.timers.remove(timer);
  }
}

/** A scheduler in virtual time: the common part of `simulate` and `simulateAsync`. */
export class VirtualWorld {
  readonly scheduler: Scheduler;
  readonly #clock = new SchedulerClock();

  constructor(
    program: Runnable<unknown> | ((clock: Clock) => Runnable<unknown>),
    options: SimulateOptions,
    choices: ChoiceSource | undefined,
    outside: SchedulerOptions["outside"],
  ) {
    const made = typeof program === "function" ? program(this.#clock) : program;
    this.scheduler = new Scheduler(
      {
        now: () => this.#clock.time,
        choices,
        maxSteps: options.maxSteps ?? DEFAULT_MAX_STEPS,
        keepsLog: true,
        onLog: options.onLog,
        onUnhandled: options.onUnhandled,
        outside,
        onWake: () => {},
      },
      toProgram(made, "program"),
      options.name ?? "root",
    );
    this.#clock.scheduler = this.scheduler;
  }

  /** Nothing can run: moves to the next instant at which something is due. If there is none, the run is stuck. */
  moveOn(): void {
    const nextAt = this.scheduler.timers.nextAt;
    if (nextAt === undefined) return standstill(this.scheduler);
    this.#clock.time = nextAt;
    this.scheduler.fireDue(nextAt);
  }
}
