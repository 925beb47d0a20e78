import { nodeThreadId } from "./host.ts";
import { MAX_ATTACHMENTS, type Memory, NEXT_THREAD, OWNERS } from "./memory.ts";

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
