/** A scheduler in virtual time: the common part of `simulate` and `simulateAsync`. */
import type { Clock } from "../clock.ts";
import type { Runnable } from "./effect.ts";
import { standstill } from "./lifecycle.ts";
import { toProgram } from "./program.ts";
import type { ChoiceSource } from "./random.ts";
import { Scheduler } from "./scheduler.ts";
import type { SchedulerOptions } from "./scheduler-options.ts";
import { Callback } from "./task.ts";

const DEFAULT_MAX_STEPS = 100_000_000;

export interface WorldOptions {
  readonly maxSteps?: number;
  readonly onLog?: NonNullable<SchedulerOptions["onLog"]>;
  readonly onUnhandled?: NonNullable<SchedulerOptions["onUnhandled"]>;
  readonly name?: string;
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

export class VirtualWorld {
  readonly scheduler: Scheduler;
  readonly #clock = new SchedulerClock();

  constructor(
    program: Runnable<unknown> | ((clock: Clock) => Runnable<unknown>),
    options: WorldOptions,
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
