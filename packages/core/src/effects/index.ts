/** `slotkeeper/effects`: cooperative tasks, the cooperative semaphore, and a deterministic simulator. `*`: every export is public. */
export { AcquireTimeoutError } from "../errors.ts";
export type { DeadlockReport, HolderReport, ParkedReport, SemaphoreReport } from "./deadlock.ts";
export type { Effect, Program, Runnable } from "./effect.ts";
export * from "./errors.ts";
export * from "./explore.ts";
export type { FailedRun, LeakedPermits, SimulationResult } from "./outcome.ts";
export type { PromiseRequest, PromiseSource, Resolver } from "./outside-wait.ts";
export * from "./promise-effects.ts";
export { PRIORITY_HIGH, PRIORITY_IDLE, PRIORITY_NORMAL } from "./ready-queue.ts";
export { type RunOptions, run } from "./run.ts";
export type { LogEntry } from "./scheduler.ts";
export type { SemaphoreHandle } from "./semaphore.ts";
export * from "./semaphore-effects.ts";
export type { Future, PromiseHandle } from "./settleable.ts";
export { type SimulateOptions, simulate } from "./simulate.ts";
export { type AsyncProgram, type SimulateAsyncOptions, simulateAsync } from "./simulate-async.ts";
export type { SpawnOptions, Task } from "./task.ts";
export * from "./task-effects.ts";
