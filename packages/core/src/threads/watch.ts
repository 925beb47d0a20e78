import type { SharedSemaphore } from "./shared-semaphore.ts";

/** What `watch` needs of Node's `Worker`. */
export interface WatchedWorker {
  readonly threadId: number;
  once(event: "exit", listener: (code: number) => void): unknown;
  off(event: "exit", listener: (code: number) => void): unknown;
}

/**
 * Gives back what a Node worker held or waited for when it ends, however it ends. Call it where the worker is started;
 * what it returns stops watching.
 *
 * @example
 * ```ts
 * import { Worker } from "node:worker_threads";
 * import { SharedSemaphore, watch } from "slotkeeper/threads";
 *
 * const slots = SharedSemaphore.create(2);
 * const worker = new Worker(new URL("./worker.js", import.meta.url), { workerData: slots.handle });
 * watch(worker, slots);
 * ```
 */
export function watch(worker: WatchedWorker, semaphore: Pick<SharedSemaphore, "reap">): () => void {
  // Node sets `threadId` to -1 when the worker ends, so it is read now.
  const { threadId } = worker;
  if (!Number.isSafeInteger(threadId) || threadId < 1) {
    throw new TypeError(`Expected \`worker\` to be a Node worker that runs, got one with the threadId ${threadId}`);
  }
  const reap = () => void semaphore.reap(threadId);
  worker.once("exit", reap);
  return () => void worker.off("exit", reap);
}
