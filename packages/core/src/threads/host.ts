import { realClock } from "../clock.ts";
import type { Memory } from "./memory.ts";

/** What Node offers and browsers do not; asked at run time, since an import of `node:` would break bundles for the web. */
interface NodeProcess {
  hrtime(): [seconds: number, nanoseconds: number];
  /** Node 20.16 and later. */
  getBuiltinModule?(name: string): { readonly threadId: number; readonly isMainThread: boolean } | undefined;
}

const node = (globalThis as { process?: Partial<NodeProcess> }).process;
const workerThreads = node?.getBuiltinModule?.("node:worker_threads");

/** Node's own number of this thread, `worker.threadId` for the thread that started it; undefined in a browser. */
export const nodeThreadId: number | undefined = workerThreads?.threadId;

/**
 * Time that all threads agree on. Node's `performance.timeOrigin` is taken per thread from the wall clock, so that two
 * threads differ by as much as the clock was set between their starts; the process's monotonic clock is one.
 */
export function sharedNow(): number {
  if (node?.hrtime === undefined) return realClock.now();
  const [seconds, nanoseconds] = node.hrtime();
  return seconds * 1000 + nanoseconds / 1e6;
}

/** Whether this thread may sleep. A page's main thread cannot; Node's could, and would stop the whole program's events. */
export function mayBlock(memory: Memory): boolean {
  if (workerThreads?.isMainThread === true) return false;
  try {
    // Never sleeps: the first word, the format's number, is not 0. Throws where waiting is not allowed.
    Atomics.wait(memory.words, 0, 0, 0);
    return true;
  } catch {
    return false;
  }
}
