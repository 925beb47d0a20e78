/** `slotkeeper/threads`: one semaphore for all threads of a process. */
export type { AttachOptions, SharedAcquireOptions, SharedSemaphoreOptions } from "./options.ts";
export { SharedSemaphore, type SharedSemaphoreHandle } from "./shared-semaphore.ts";
export type { SharedSlot } from "./shared-slot.ts";
export { type WatchedWorker, watch } from "./watch.ts";
