/**
 * Runs a program in real time.
 *
 * RUN1  The program starts before `run` returns, and continues in timer and promise callbacks of the host.
 * RUN2  At most one timer of the host is set, for the next time at which something is due. When the run is over, there
 *     is none.
 * RUN3  Tasks that are always ready do not starve the host: after a slice of time, the loop continues in a new timer,
 *     and after a number of turns in a new microtask. A single task that never parks does starve the host, because
 *     tasks are cooperative.
 */
import { Agenda, type Due } from "../agenda.ts";
import { type Clock, realClock } from "../clock.ts";
import { callForeign } from "../foreign-call.ts";
import { anyObject, callback, readOptions, string } from "../options.ts";
import type { Runnable } from "./effect.ts";
import type { TaskRef } from "./errors.ts";
import { standstill, unwind } from "./lifecycle.ts";
import { endingOf, type FailedRun, type SimulationResult } from "./outcome.ts";
import { toProgram } from "./program.ts";
import { type LogEntry, Scheduler } from "./scheduler.ts";

/** Options of `run`. */
export interface RunOptions<T> {
  /** Aborting cancels every task; once they have unwound, `run` rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /** The source of time and timers. @defaultValue real time */
  readonly clock?: Clock;
  /** Called with each message of `log` when it is written. @defaultValue none */
  readonly onLog?: (message: string, entry: LogEntry) => void;
  /**
   * Called at the end of the run, also if it failed, with the result that `simulate` would return. Without this option
   * the log is not kept.
   */
  readonly onEnd?: (result: SimulationResult<T> | FailedRun) => void;
  /** Called at the end with each failure of a task that no task waited for. @defaultValue the run rejects with them */
  readonly onUnhandled?: (error: unknown, task: TaskRef) => void;
  /** The name of the root task. @defaultValue "root" */
  readonly name?: string;
}

const runRules = {
  signal: anyObject,
  clock: anyObject,
  onLog: callback,
  onEnd: callback,
  onUnhandled: callback,
  name: string,
};

const SLICE_MS = 10;
const TURNS_PER_LOOK = 256;
const TURNS_PER_MICROTASK = 16_384;

/**
 * Runs a program in real time. The program starts before `run` returns. The promise rejects with the error of the
 * program, or with `DeadlockError` if no task can continue.
 *
 * @example
 * ```ts
 * import { delay, gather, run } from "slotkeeper/effects";
 *
 * function* program() {
 *   yield* gather(delay(10), delay(20));
 *   return "done";
 * }
 * console.log(await run(program)); // done, after 20 ms
 * ```
 */
export function run<T>(program: Runnable<T>, options: RunOptions<T> = {}): Promise<T> {
  return new Promise((resolve, reject) => {
    const given = readOptions(options, runRules);
    const { signal } = given;
    if (signal?.aborted === true) return reject(signal.reason);
    const driver = new RealTimeDriver(program, given, resolve, reject);
    if (signal !== undefined) driver.abortWith(signal);
    driver.pump();
  });
}

class RealTimeDriver<T> {
  readonly #clock: Clock;
  readonly #options: RunOptions<T>;
  readonly #scheduler: Scheduler;
  readonly #resolve: (value: T) => void;
  readonly #reject: (reason: unknown) => void;
  #isPumping = false;
  readonly #agenda: Agenda;
  readonly #wake: Due = { dueAt: 0, agendaAt: -1, due: () => this.pump() };
  #stopListening = (): void => {};
  #abortReason: { readonly reason: unknown } | undefined = undefined;

  constructor(
    program: Runnable<T>,
    options: RunOptions<T>,
    resolve: (value: T) => void,
    reject: (reason: unknown) => void,
  ) {
    this.#options = options;
    this.#clock = options.clock ?? realClock;
    this.#agenda = new Agenda(this.#clock);
    this.#resolve = resolve;
    this.#reject = reject;
    this.#scheduler = new Scheduler(
      {
        now: () => this.#clock.now(),
        choices: undefined,
        maxSteps: Number.POSITIVE_INFINITY,
        keepsLog: options.onEnd !== undefined,
        onLog: options.onLog,
        onUnhandled: options.onUnhandled,
        outside: "awaited",
        onWake: () => this.pump(),
      },
      toProgram(program, "program"),
      options.name ?? "root",
    );
  }

  abortWith(signal: AbortSignal): void {
    const onAbort = (): void => {
      this.#abortReason = { reason: signal.reason };
      unwind(this.#scheduler, signal.reason);
      this.pump();
    };
    signal.addEventListener("abort", onAbort, { once: true });
    this.#stopListening = () => signal.removeEventListener("abort", onAbort);
  }

  /** Runs everything that can run now, and arranges the next call. */
  readonly pump = (): void => {
    // If this is called from inside a task (an abort, a fake clock), the outer loop continues the work.
    if (this.#isPumping || this.#scheduler.isOver) return;
    this.#isPumping = true;
    try {
      this.#work();
    } finally {
      this.#isPumping = false;
    }
    if (this.#scheduler.isOver) this.#end();
  };

  #work(): void {
    const scheduler = this.#scheduler;
    const startedAt = this.#clock.now();
    for (let turns = 0; !scheduler.isOver; turns += TURNS_PER_LOOK) {
      const now = this.#clock.now();
      scheduler.fireDue(now);
      if (scheduler.ready.size === 0) {
        if (this.#rest()) return;
      } else if (now - startedAt > SLICE_MS) return this.#wakeAt(now);
      else if (turns > TURNS_PER_MICROTASK) return queueMicrotask(this.pump);
      scheduler.turns(TURNS_PER_LOOK);
    }
  }

  /**
   * Called when nothing is ready. Returns false if that woke a task, because a standstill cancels the remaining tasks.
   */
  #rest(): boolean {
    const { timers, outsideCount } = this.#scheduler;
    if (timers.nextAt !== undefined) this.#wakeAt(timers.nextAt);
    else if (outsideCount === 0) {
      standstill(this.#scheduler);
      return false;
    } else this.#wakeAt(Number.POSITIVE_INFINITY);
    return true;
  }

  #wakeAt(at: number): void {
    // Otherwise the agenda would keep a timer for an earlier time at which nothing is due any more (RUN2).
    if (at !== this.#wake.dueAt) this.#agenda.cancel(this.#wake);
    this.#agenda.schedule(this.#wake, at);
  }

  #end(): void {
    this.#agenda.close();
    this.#stopListening();
    const ending = endingOf<T>(this.#scheduler);
    const { root } = this.#scheduler;
    const { onEnd } = this.#options;
    let { result } = ending;
    if (ending.failed) {
      const wasAborted = this.#abortReason !== undefined && root.result === root.cancelError;
      const error = wasAborted ? this.#abortReason?.reason : ending.result.error;
      result = { ...ending.result, error };
      this.#reject(error);
    } else this.#resolve(ending.result.value);
    if (onEnd !== undefined) callForeign(() => onEnd(result));
  }
}
