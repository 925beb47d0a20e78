import type { Clock } from "../clock.ts";

/**
 * Virtual time for tests: nothing moves until `advance` is called. Timers fire in the order of their due time, ties in
 * the order they were set, and `now()` is exact inside each callback.
 */
export class FakeClock implements Clock {
  #now: number;
  #nextId = 0;
  readonly #timers = new Map<number, FakeTimer>();

  constructor(startAt = 0) {
    this.#now = startAt;
  }

  now(): number {
    return this.#now;
  }

  setTimer(callback: () => void, delayMs: number): FakeTimer {
    const timer = new FakeTimer(this.#nextId++, this.#now + Math.max(0, delayMs), callback);
    this.#timers.set(timer.id, timer);
    return timer;
  }

  clearTimer(timer: unknown): void {
    if (timer instanceof FakeTimer) this.#timers.delete(timer.id);
  }

  /** How many timers are set. */
  get pending(): number {
    return this.#timers.size;
  }

  /** How many of them would keep a process alive. */
  get keepingAlive(): number {
    return [...this.#timers.values()].filter((timer) => timer.alive).length;
  }

  /** Moves time on and fires what is due, synchronously. */
  advance(ms: number): void {
    const until = this.#until(ms);
    for (let timer = this.#nextDue(until); timer !== undefined; timer = this.#nextDue(until)) this.#fire(timer);
    this.#now = until;
  }

  /** As `advance`, but lets promise reactions run before it starts, after each timer, and at the end. */
  async advanceAsync(ms: number): Promise<void> {
    await settled();
    const until = this.#until(ms);
    for (let timer = this.#nextDue(until); timer !== undefined; timer = this.#nextDue(until)) {
      this.#fire(timer);
      await settled();
    }
    this.#now = until;
    await settled();
  }

  #until(ms: number): number {
    if (!(ms >= 0)) throw new RangeError(`Expected \`ms\` to be a number from 0 up, got ${ms}`);
    return this.#now + ms;
  }

  #nextDue(until: number): FakeTimer | undefined {
    let next: FakeTimer | undefined;
    for (const timer of this.#timers.values()) {
      if (timer.dueAt <= until && (next === undefined || timer.dueAt < next.dueAt)) next = timer;
    }
    return next;
  }

  #fire(timer: FakeTimer): void {
    this.#timers.delete(timer.id);
    this.#now = Math.max(this.#now, timer.dueAt);
    timer.callback();
  }
}

/** What `FakeClock.setTimer` returns: Node's `ref`/`unref`, and whether it would keep a process alive. */
export class FakeTimer {
  readonly id: number;
  readonly dueAt: number;
  readonly callback: () => void;
  alive = true;

  constructor(id: number, dueAt: number, callback: () => void) {
    this.id = id;
    this.dueAt = dueAt;
    this.callback = callback;
  }

  ref(): void {
    this.alive = true;
  }

  unref(): void {
    this.alive = false;
  }
}

/** Resolves after the promise reactions that are queued now, and those they queue, have run (a bounded number of turns). */
export async function settled(turns = 32): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await Promise.resolve();
}
