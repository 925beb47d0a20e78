/**
 * The specification of a semaphore with arrays: slow, simple and synchronous. Property tests apply the same steps to it and
 * to the real semaphore, and compare the two. The test sets the time. To find what falls due, every waiter and holder is
 * visited.
 */
export type Fate =
  | "waiting"
  | "held"
  | "released"
  | "expired"
  | "timed out"
  | "aborted"
  | "closed"
  | "queue full"
  | "too wide"
  | "never";

interface Ask {
  readonly id: number;
  readonly width: number;
  readonly signal: number | undefined;
  readonly timeoutAt: number;
}

interface Hold {
  readonly id: number;
  readonly width: number;
  expiresAt: number;
}

export interface NaiveOptions {
  readonly ttlMs: number;
  readonly maxWaiters: number;
}

export class NaiveSemaphore {
  capacity: number;
  readonly #options: NaiveOptions;
  closed = false;
  now: number;
  queue: Ask[] = [];
  holders: Hold[] = [];
  /** The outcome of every acquire. */
  readonly fates = new Map<number, Fate>();
  /** The acquires that got a slot, in order. */
  readonly grants: number[] = [];
  counters = { acquired: 0, released: 0, expired: 0, timedOut: 0, aborted: 0, rejected: 0 };

  constructor(capacity: number, options: NaiveOptions, now: number) {
    this.capacity = capacity;
    this.#options = options;
    this.now = now;
  }

  get inUse(): number {
    return this.holders.reduce((sum, { width }) => sum + width, 0);
  }

  get available(): number {
    return Math.max(0, this.capacity - this.inUse);
  }

  get locked(): boolean {
    return this.inUse >= this.capacity || this.queue.length > 0;
  }

  acquire(id: number, width: number, timeoutMs: number, signal?: number): void {
    if (width > this.capacity) this.fates.set(id, "too wide");
    else if (this.#isFree(width)) this.#grant(id, width);
    else if (this.closed) this.#end(id, "closed", "rejected");
    else if (timeoutMs === 0) this.#end(id, "timed out", "timedOut");
    else if (this.queue.length >= this.#options.maxWaiters) this.#end(id, "queue full", "rejected");
    else {
      this.queue.push({ id, width, signal, timeoutAt: this.now + timeoutMs });
      this.fates.set(id, "waiting");
    }
  }

  tryAcquire(id: number, width: number): void {
    if (width > this.capacity) this.fates.set(id, "too wide");
    else if (this.#isFree(width)) this.#grant(id, width);
    else this.fates.set(id, "never");
  }

  /** Returns whether the slot was held. */
  release(id: number): boolean {
    return this.#giveBack(id, "released");
  }

  renew(id: number, ttlMs: number = this.#options.ttlMs): boolean {
    const hold = this.holders.find((one) => one.id === id);
    if (hold !== undefined) hold.expiresAt = this.now + ttlMs;
    return hold !== undefined;
  }

  abort(signal: number): void {
    const leaving = this.queue.filter((ask) => ask.signal === signal);
    this.queue = this.queue.filter((ask) => ask.signal !== signal);
    for (const { id } of leaving) this.#end(id, "aborted", "aborted");
    this.#serve();
  }

  resize(capacity: number): void {
    this.capacity = capacity;
    const leaving = this.queue.filter(({ width }) => width > capacity);
    this.queue = this.queue.filter(({ width }) => width <= capacity);
    for (const { id } of leaving) this.#end(id, "too wide", "rejected");
    this.#serve();
  }

  close(): void {
    this.closed = true;
    const leaving = this.queue;
    this.queue = [];
    for (const { id } of leaving) this.#end(id, "closed", "rejected");
  }

  /** A timeout must not fall due at the same time as anything else, because the order is not specified. */
  advance(ms: number): void {
    const until = this.now + ms;
    for (;;) {
      const due = Math.min(...this.queue.map((ask) => ask.timeoutAt), ...this.holders.map((hold) => hold.expiresAt));
      if (due > until) break;
      this.now = due;
      for (const { id } of this.queue.filter(({ timeoutAt }) => timeoutAt <= due)) {
        this.queue = this.queue.filter((ask) => ask.id !== id);
        this.#end(id, "timed out", "timedOut");
      }
      this.#serve();
      for (const { id } of this.holders.filter(({ expiresAt }) => expiresAt <= due)) this.#giveBack(id, "expired");
    }
    this.now = until;
  }

  #isFree(width: number): boolean {
    return !this.closed && this.queue.length === 0 && this.inUse + width <= this.capacity;
  }

  #grant(id: number, width: number): void {
    this.holders.push({ id, width, expiresAt: this.now + this.#options.ttlMs });
    this.fates.set(id, "held");
    this.grants.push(id);
    this.counters.acquired++;
  }

  #giveBack(id: number, how: "released" | "expired"): boolean {
    if (!this.holders.some((hold) => hold.id === id)) return false;
    this.holders = this.holders.filter((hold) => hold.id !== id);
    this.fates.set(id, how);
    this.counters[how]++;
    this.#serve();
    return true;
  }

  #end(id: number, fate: Fate, counter: "timedOut" | "aborted" | "rejected"): void {
    this.fates.set(id, fate);
    this.counters[counter]++;
  }

  #serve(): void {
    for (let head = this.queue[0]; head !== undefined; head = this.queue[0]) {
      if (this.inUse + head.width > this.capacity) return;
      this.queue.shift();
      this.#grant(head.id, head.width);
    }
  }
}
