/**
 * The layout of the SharedArrayBuffer in words. It contains everything that the threads share. `dispatcher.ts` defines
 * which thread may change which word.
 *
 * | part      | size              | a word holds                                                             |
 * |-----------|-------------------|--------------------------------------------------------------------------|
 * | header    | 64 words          | sizes and options, the gate, the desk, the head of the queue             |
 * | holders   | 4 per slot        | FREE, RETIRED, or the tag of the holder; then the deadline (64 bits)     |
 * | threads   | 1 per attachment  | 0 unused, thread id + 1, or DEAD                                         |
 * | waiters   | 8 per wait cell   | state, tag, below (in the stack of arrivals), behind, ahead, ticket      |
 */

const MAGIC = 0x51_07_20_01;
const HEADER_WORDS = 64;
const HOLDER_WORDS = 4;
const WAITER_WORDS = 8;

// Written once, by `create`.
const MAX_HOLDERS = 1;
const MAX_WAITERS = 2;
const WAIT_CELLS = 3;
const TTL_MS = 4;
const BASE_AT = 3; // as a 64-bit float: words 6 and 7

// Its own cache line: the only header word that an uncontended acquire and release read.
export const GATE = 16;
// The desk and the words of its owner; only the owner writes the last six.
export const DESK = 32;
export const GONE = 33;
export const DEATHS = 34;
export const CLOSED_AT = 35;
export const WANT = 36;
export const NEXT_THREAD = 37;
export const HIGHEST = 38;
export const OWNERS = 39;
export const HEAD = 48;
export const TAIL = 49;
export const LENGTH = 50;
export const TICKETS = 51;
export const LIVE = 52;
export const USED = 53;
export const HOLDERS = HEADER_WORDS;

/**
 * The gate: open, shut, or shut with an unread order (resize, close). A positive value is the wait cell of the newest
 * arrival.
 */
export const OPEN = 0;
export const SHUT = -1;
export const ORDERED = -2;

/** A holder word that is not a tag. Tags end in binary 10. */
export const FREE = 0;
export const RETIRED = 1;

/** The word of a thread that has ended but is not reaped yet. */
export const DEAD = -1;

/** The largest number of attachments at one time: ten bits of a tag. */
export const MAX_ATTACHMENTS = 1023;
/** The largest number of holder cells: the bits that remain in the state of a wait cell. */
export const MAX_CELLS = 2 ** 17;

/**
 * The step to the next tag of the same owner: only the sequence number (the upper 20 bits) changes, and wraps around.
 */
export const TAG_STEP = 1 << 12;
export const firstTag = (owner: number): number => (owner << 2) | 2;
export const isTag = (word: number): boolean => (word & 3) === 2;
export const ownerOfTag = (tag: number): number => (tag >> 2) & MAX_ATTACHMENTS;

/** The kinds of a wait cell's state word; the table of transitions is in `dispatcher.ts`. */
export const UNUSED = 0;
export const CLAIMED = 1;
export const WAITING = 2;
export const ASLEEP = 3;
export const NUDGED = 4;
export const GRANTED = 5;
export const REFUSED = 6;
export const CLOSED = 7;
export const CANCELLED = 8;
export type WaitKind =
  | typeof UNUSED
  | typeof CLAIMED
  | typeof WAITING
  | typeof ASLEEP
  | typeof NUDGED
  | typeof GRANTED
  | typeof REFUSED
  | typeof CLOSED
  | typeof CANCELLED;

/** A state word: kind in 4 bits, owner in 10, for GRANTED the holder cell in the rest. */
export const stateOf = (kind: WaitKind, owner: number, holder = 0): number => kind | (owner << 4) | (holder << 14);
export const kindOf = (state: number): WaitKind => (state & 15) as WaitKind;
export const ownerOf = (state: number): number => (state >> 4) & MAX_ATTACHMENTS;
export const holderOf = (state: number): number => state >>> 14;
export const isPending = (kind: WaitKind): boolean => kind === WAITING || kind === ASLEEP || kind === NUDGED;

export interface Sizes {
  readonly slots: number;
  readonly maxHolders: number;
  readonly maxWaiters: number;
  readonly ttlMs: number;
}

/** The buffer with its views. Holder cells count from 0, attachments and wait cells from 1 (0 is "none"). */
export class Memory {
  readonly buffer: SharedArrayBuffer;
  readonly words: Int32Array<SharedArrayBuffer>;
  readonly longs: BigInt64Array<SharedArrayBuffer>;
  readonly maxHolders: number;
  readonly maxWaiters: number;
  readonly waitCells: number;
  /** 0: no ttl. */
  readonly ttlMs: number;
  /** The time from which deadlines are counted. */
  readonly baseAt: number;
  readonly #threadsAt: number;
  readonly #waitersAt: number;

  constructor(buffer: SharedArrayBuffer) {
    const words = new Int32Array(buffer);
    if (words[0] !== MAGIC)
      throw new TypeError("Expected `handle` to be of this version of SharedSemaphore, got another version");
    this.buffer = buffer;
    this.words = words;
    this.longs = new BigInt64Array(buffer);
    this.maxHolders = words[MAX_HOLDERS]!;
    this.maxWaiters = words[MAX_WAITERS]!;
    this.waitCells = words[WAIT_CELLS]!;
    this.ttlMs = words[TTL_MS]!;
    this.baseAt = new Float64Array(buffer)[BASE_AT]!;
    this.#threadsAt = HEADER_WORDS + this.maxHolders * HOLDER_WORDS;
    this.#waitersAt = this.#threadsAt + MAX_ATTACHMENTS + 1;
  }

  static allocate({ slots, maxHolders, maxWaiters, ttlMs }: Sizes, baseAt: number): Memory {
    // Cancelled cells stay in the queue until a sweep, and granted ones until their thread has read the outcome.
    const waitCells = 2 * maxWaiters + maxHolders + 64;
    const words = HEADER_WORDS + maxHolders * HOLDER_WORDS + MAX_ATTACHMENTS + 1 + (waitCells + 1) * WAITER_WORDS;
    const buffer = new SharedArrayBuffer(words * 4);
    const view = new Int32Array(buffer);
    view.set([MAGIC, maxHolders, maxWaiters, waitCells, ttlMs]);
    new Float64Array(buffer, 0, HEADER_WORDS / 2)[BASE_AT] = baseAt;
    for (let cell = slots; cell < maxHolders; cell++) view[HOLDERS + cell * HOLDER_WORDS] = RETIRED;
    view[WANT] = view[LIVE] = view[USED] = slots;
    return new Memory(buffer);
  }

  holder(cell: number): number {
    return HOLDERS + cell * HOLDER_WORDS;
  }

  /** The index of the deadline in `longs`. */
  deadline(cell: number): number {
    return this.holder(cell) / 2 + 1;
  }

  thread(owner: number): number {
    return this.#threadsAt + owner;
  }

  state(cell: number): number {
    return this.#waitersAt + cell * WAITER_WORDS;
  }

  tag(cell: number): number {
    return this.state(cell) + 1;
  }

  below(cell: number): number {
    return this.state(cell) + 2;
  }

  behind(cell: number): number {
    return this.state(cell) + 3;
  }

  ahead(cell: number): number {
    return this.state(cell) + 4;
  }

  ticket(cell: number): number {
    return this.state(cell) + 5;
  }

  /** Raises a word that only increases. */
  raise(word: number, value: number): void {
    for (let seen = this.load(word); seen < value; seen = this.load(word)) {
      if (this.swap(word, seen, value)) return;
    }
  }

  load(word: number): number {
    return Atomics.load(this.words, word);
  }

  store(word: number, value: number): void {
    Atomics.store(this.words, word, value);
  }

  /** Changes a word from `from` to `to`. Returns false if it had another value. */
  swap(word: number, from: number, to: number): boolean {
    return Atomics.compareExchange(this.words, word, from, to) === from;
  }
}
