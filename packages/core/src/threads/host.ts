import { realClock } from "../clock.ts";
import type { Memory } from "./memory.ts";

/**
 * What Node has and browsers lack. It is looked up at run time, because an import of `node:` would break bundles for
 * the web.
 */
interface NodeProcess {
  hrtime(): [seconds: number, nanoseconds: number];
  /** Node 20.16 and later. */
  getBuiltinModule?(name: string): { readonly threadId: number; readonly isMainThread: boolean } | undefined;
}

const node = (globalThis as { process?: Partial<NodeProcess> }).process;
const workerThreads = node?.getBuiltinModule?.("node:worker_threads");

/** Node's number of this thread (`worker.threadId` in the parent); `undefined` in a browser. */
export const nodeThreadId: number | undefined = workerThreads?.threadId;

/**
 * A time that all threads agree on. Node takes `performance.timeOrigin` from the wall clock for each thread, so two
 * threads differ by any change of the clock between their starts. The monotonic clock of the process is the same for
 * all.
 */
export function sharedNow(): number {
  if (node?.hrtime === undefined) return realClock.now();
  const [seconds, nanoseconds] = node.hrtime();
  return seconds * 1000 + nanoseconds / 1e6;
}

/**
 * Whether this thread may block. The main thread of a page cannot. Node's could, but that would stop all events of the
 * program.
 */
export function mayBlock(memory: Memory): boolean {
  if (workerThreads?.isMainThread === true) return false;
  try {
    // Never blocks, because the first word (the number of the format) is not 0. Throws if waiting is not allowed.
    Atomics.wait(memory.words, 0, 0, 0);
    return true;
  } catch {
    return false;
  }
}
