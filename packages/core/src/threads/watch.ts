import type { SharedSemaphore } from "./shared-semaphore.ts";

/** The parts of Node's `Worker` that `watch` uses. */
export interface WatchedWorker {
  /** The id that the worker uses as its `threadId` in `attach`. */
  readonly threadId: number;
  /** Adds the listener that reaps the worker. */
  once(event: "exit", listener: (code: number) => void): unknown;
  /** Removes that listener. */
  off(event: "exit", listener: (code: number) => void): unknown;
}

/**
 * Reaps a Node worker when it ends, for any reason: its slots and waits are given back. Call it where the worker is
 * started. The returned function stops watching.
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
  // Read now, because Node sets `threadId` to -1 when the worker ends.
  const { threadId } = worker;
  if (!Number.isSafeInteger(threadId) || threadId < 1) {
    throw new TypeError(`Expected \`worker\` to be a Node worker that runs, got one with the threadId ${threadId}`);
  }
  const reap = () => void semaphore.reap(threadId);
  worker.once("exit", reap);
  return () => void worker.off("exit", reap);
}
