import type { Clock } from "../clock.ts";

/**
 * Virtual time for tests: time moves only when `advance` is called. Timers fire in the order of their due time, ties in
 * the order in which they were set, and `now()` is exact inside each callback. Use it in tests that advance time by
 * hand; `simulate` of `slotkeeper/effects` moves time by itself until a whole program has ended.
 *
 * @example
 * ```ts
 * import { Semaphore } from "slotkeeper";
 * import { FakeClock } from "slotkeeper/testing";
 *
 * const clock = new FakeClock();
 * const db = new Semaphore(1, { ttlMs: 1_000, clock });
 * const slot = await db.acquire();
 * clock.advance(1_000);
 * console.log(slot.released); // true
 * ```
 */
export class FakeClock implements Clock {
  #now: number;
  #nextId = 0;
  readonly #timers = new Map<number, FakeTimer>();

  constructor(startAt = 0) {
    this.#now = startAt;
  }

  /** The virtual time, in milliseconds. */
  now(): number {
    return this.#now;
  }

  /** See `Clock.setTimer`. */
  setTimer(callback: () => void, delayMs: number): FakeTimer {
    const timer = new FakeTimer(this.#nextId++, this.#now + Math.max(0, delayMs), callback);
    this.#timers.set(timer.id, timer);
    return timer;
  }

  /** See `Clock.clearTimer`. */
  clearTimer(timer: unknown): void {
    if (timer instanceof FakeTimer) this.#timers.delete(timer.id);
  }

  /** The number of timers that are set. */
  get pending(): number {
    return this.#timers.size;
  }

  /** The number of timers that would keep a process alive. */
  get keepingAlive(): number {
    return [...this.#timers.values()].filter((timer) => timer.alive).length;
  }

  /** Moves time forward by `ms` milliseconds and fires all timers that are due, synchronously. */
  advance(ms: number): void {
    for (const timer of this.#due(ms)) timer.callback();
  }

  /** Like `advance`, but lets promise reactions run before it starts, after each timer, and at the end. */
  async advanceAsync(ms: number): Promise<void> {
    await settled();
    for (const timer of this.#due(ms)) {
      timer.callback();
      await settled();
    }
    await settled();
  }

  /** Moves time from timer to timer, and to the end. */
  *#due(ms: number): Generator<FakeTimer> {
    if (!(ms >= 0)) throw new RangeError(`Expected \`ms\` to be a number from 0 up, got ${ms}`);
    const until = this.#now + ms;
    for (let timer = this.#nextDue(until); timer !== undefined; timer = this.#nextDue(until)) {
      this.#timers.delete(timer.id);
      this.#now = Math.max(this.#now, timer.dueAt);
      yield timer;
    }
    this.#now = until;
  }

  #nextDue(until: number): FakeTimer | undefined {
    let next: FakeTimer | undefined;
    for (const timer of this.#timers.values()) {
      if (timer.dueAt <= until && (next === undefined || timer.dueAt < next.dueAt)) next = timer;
    }
    return next;
  }
}

/**
 * The result of `FakeClock.setTimer`: it has Node's `ref` and `unref`, and shows whether it would keep a process alive.
 *
 * @example
 * ```ts
 * import { FakeClock } from "slotkeeper/testing";
 *
 * const timer = new FakeClock(0).setTimer(() => {}, 50);
 * console.log(timer.dueAt, timer.alive); // 50 true
 * ```
 */
export class FakeTimer {
  /** Unique for each timer of the clock; later timers have larger ids. */
  readonly id: number;
  /** When it fires, in milliseconds of virtual time. */
  readonly dueAt: number;
  /** The function that it calls. */
  readonly callback: () => void;
  alive = true;

  constructor(id: number, dueAt: number, callback: () => void) {
    this.id = id;
    this.dueAt = dueAt;
    this.callback = callback;
  }

  /** Lets it keep a process alive, as in Node. */
  ref(): void {
    this.alive = true;
  }

  /** Lets a process end before it fires, as in Node. */
  unref(): void {
    this.alive = false;
  }
}

/**
 * Resolves after the promise reactions that are queued now, and those they queue, have run (a bounded number of turns).
 *
 * @example
 * ```ts
 * import { Semaphore } from "slotkeeper";
 * import { settled } from "slotkeeper/testing";
 *
 * const db = new Semaphore(1);
 * let isGranted = false;
 * void db.acquire().then(() => (isGranted = true));
 * await settled();
 * console.log(isGranted); // true
 * ```
 */
export async function settled(turns = 32): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await Promise.resolve();
}
