/** `slotkeeper/effects`: cooperative tasks, the cooperative semaphore, and a deterministic simulator. */
export { AcquireTimeoutError } from "../errors.ts";
export type { DeadlockReport, HolderReport, ParkedReport, SemaphoreReport } from "./deadlock-report.ts";
export type { Effect, Program, Runnable } from "./effect.ts";
export {
  DeadlockError,
  EFFECT_ERROR_CODES,
  OverReleaseError,
  PromiseSettledError,
  StepLimitError,
  TaskCancelledError,
  type TaskRef,
} from "./errors.ts";
export {
  type Exploration,
  type ExploreOptions,
  explore,
  exploreAsync,
  exploreAsyncOrThrow,
  exploreOrThrow,
  type Failure,
} from "./explore.ts";
export type { FailedRun, LeakedPermits, SimulationResult } from "./outcome.ts";
export type { PromiseRequest, PromiseSource, Resolver } from "./outside-wait.ts";
export {
  completePromise,
  createPromise,
  type FromPromiseOptions,
  failPromise,
  fromPromise,
} from "./promise-effects.ts";
export { PRIORITY_HIGH, PRIORITY_IDLE, PRIORITY_NORMAL } from "./ready-queue.ts";
export { type RunOptions, run } from "./run.ts";
export type { LogEntry } from "./scheduler.ts";
export type { SemaphoreHandle } from "./semaphore.ts";
export {
  type AcquireSemaphoreOptions,
  acquireSemaphore,
  type CreateSemaphoreOptions,
  createSemaphore,
  releaseSemaphore,
  tryAcquireSemaphore,
  withSemaphore,
} from "./semaphore-effects.ts";
export type { Future, PromiseHandle } from "./settleable.ts";
export { type SimulateOptions, simulate } from "./simulate.ts";
export { type AsyncProgram, type SimulateAsyncOptions, simulateAsync } from "./simulate-async.ts";
export type { SpawnOptions, Task } from "./task.ts";
export {
  cancel,
  delay,
  type GroupItem,
  gather,
  log,
  now,
  type Outcome,
  race,
  spawn,
  tryCatch,
  type Waitable,
  wait,
} from "./task-effects.ts";
