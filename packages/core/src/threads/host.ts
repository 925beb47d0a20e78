import { realClock } from "../clock.ts";
import { MAX_ATTACHMENTS, type Memory, NEXT_THREAD, OWNERS } from "./memory.ts";

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
const nodeThreadId: number | undefined = workerThreads?.threadId;

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

/** Threads without a number of their own (browsers) get ids from here on, far above those of Node. */
const FIRST_ALLOCATED_ID = 2 ** 30;

/** The identity of this thread in one semaphore: the id for `reap`, and its own place in the table of attachments. */
export interface Identity {
  readonly threadId: number;
  readonly owner: number;
}

export function claimIdentity(memory: Memory, threadId = nodeThreadId ?? allocateId(memory)): Identity {
  for (let owner = 1; owner <= MAX_ATTACHMENTS; owner++) {
    if (memory.load(memory.thread(owner)) !== 0) continue;
    // Before the claim: a search for dead threads stops at this number.
    memory.raise(OWNERS, owner);
    if (memory.swap(memory.thread(owner), 0, threadId + 1)) return { threadId, owner };
  }
  throw new RangeError(
    `Expected at most ${MAX_ATTACHMENTS} attached threads, got one more; reap threads that have ended`,
  );
}

function allocateId(memory: Memory): number {
  return FIRST_ALLOCATED_ID + Atomics.add(memory.words, NEXT_THREAD, 1);
}
