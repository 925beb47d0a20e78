import { nodeThreadId } from "./host.ts";
import { firstTag, MAX_ATTACHMENTS, type Memory, NEXT_THREAD, TAG_STEP } from "./memory.ts";

/** Ids of threads that have no number of their own (browsers) begin here, far from Node's. */
const FIRST_ALLOCATED_ID = 2 ** 30;

/** Who this thread is to one semaphore: a place in the table of attachments, and the tags it has used. */
export class Identity {
  readonly threadId: number;
  readonly owner: number;
  #tag: number;

  constructor(threadId: number, owner: number) {
    this.threadId = threadId;
    this.owner = owner;
    this.#tag = firstTag(owner);
  }

  /** Differs from the last million of this owner. */
  nextTag(): number {
    this.#tag = (this.#tag + TAG_STEP) | 0;
    return this.#tag;
  }

  static claim(memory: Memory, threadId = nodeThreadId ?? allocateId(memory)): Identity {
    for (let owner = 1; owner <= MAX_ATTACHMENTS; owner++) {
      if (memory.swap(memory.thread(owner), 0, threadId + 1)) return new Identity(threadId, owner);
    }
    throw new RangeError(`Expected at most ${MAX_ATTACHMENTS} attachments of one semaphore that were not reaped`);
  }
}

function allocateId(memory: Memory): number {
  return FIRST_ALLOCATED_ID + Atomics.add(memory.words, NEXT_THREAD, 1);
}
