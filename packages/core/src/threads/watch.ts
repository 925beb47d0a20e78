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
