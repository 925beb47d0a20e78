/** What a driver (`run.ts`, `virtual-world.ts`) passes to its scheduler. */
import type { TaskRef } from "./errors.ts";
import type { Resolver } from "./outside-wait.ts";
import type { ChoiceSource } from "./random.ts";

/** One message of `log`: when it was written, and by which task. */
export interface LogEntry {
  readonly at: number;
  readonly task: TaskRef;
  readonly message: string;
}

export interface SchedulerOptions {
  readonly now: () => number;
  readonly choices: ChoiceSource | undefined;
  readonly maxSteps: number;
  readonly keepsLog: boolean;
  readonly onLog: ((message: string, entry: LogEntry) => void) | undefined;
  readonly onUnhandled: ((error: unknown, task: TaskRef) => void) | undefined;
  /** What serves `fromPromise`: the promise itself, a stand-in, or nothing. */
  readonly outside: "awaited" | "refused" | Resolver;
  /** A promise from outside has made a task ready. */
  readonly onWake: () => void;
}
