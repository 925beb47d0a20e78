/** The options that a driver (`run.ts`, `virtual-world.ts`) passes to its scheduler. */
import type { TaskRef } from "./errors.ts";
import type { Resolver } from "./outside-wait.ts";
import type { ChoiceSource } from "./random.ts";

/** One message of `log`: when it was written, and by which task. */
export interface LogEntry {
  /** When it was written, in milliseconds: virtual time under `simulate`, the time of the clock under `run`. */
  readonly at: number;
  /** The task that wrote it. */
  readonly task: TaskRef;
  /** The message. */
  readonly message: string;
}

export interface SchedulerOptions {
  readonly now: () => number;
  readonly choices: ChoiceSource | undefined;
  readonly maxSteps: number;
  readonly keepsLog: boolean;
  readonly onLog: ((message: string, entry: LogEntry) => void) | undefined;
  readonly onUnhandled: ((error: unknown, task: TaskRef) => void) | undefined;
  /** How `fromPromise` is answered: by the promise itself, by a resolver, or not at all. */
  readonly outside: "awaited" | "refused" | Resolver;
  /** Called when an outside promise has made a task ready. */
  readonly onWake: () => void;
}
