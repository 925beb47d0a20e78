import type { Clock } from "slotkeeper";

interface Timer {
  readonly callback: () => void;
  readonly dueAt: number;
  readonly seq: number;
  isCleared: boolean;
}

/**
 * The time of a simulation: a heap of timers, and a step that fires one of them and then lets all promise reactions
 * run. It is for the engine, the service and whole fleets: it supports hundreds of thousands of timers and can check
 * the world after every step. Use `FakeClock` of `slotkeeper/testing` for the library, `SkewedClock` for machines that
 * disagree about the time, and `TestClock` (`packages/postgres/test`) for the time of a real database.
 */
export class VirtualClock implements Clock {
  #now: number;
  #seq = 0;
  readonly #heap: Timer[] = [];

  constructor(startAt = 1_000_000) {
    this.#now = startAt;
  }

  now(): number {
    return this.#now;
  }

  setTimer(callback: () => void, delayMs: number): Timer {
    const timer = { callback, dueAt: this.#now + Math.max(0, delayMs), seq: this.#seq++, isCleared: false };
    this.#heap.push(timer);
    this.#rise(this.#heap.length - 1);
    return timer;
  }

  clearTimer(timer: unknown): void {
    (timer as Timer).isCleared = true;
  }

  /** Fires the next timer if it is due by `until`; otherwise moves to `until`. Returns false if nothing fired. */
  async step(until: number): Promise<boolean> {
    const next = this.#next();
    if (next === undefined || next.dueAt > until) {
      this.#now = Math.max(this.#now, until);
      return false;
    }
    this.#pop();
    this.#now = Math.max(this.#now, next.dueAt);
    next.callback();
    await drained();
    return true;
  }

  /** Runs to `until`, with `check` after every step. */
  async runUntil(until: number, check?: () => void | Promise<void>): Promise<void> {
    await drained();
    while (await this.step(until)) await check?.();
    await check?.();
  }

  run(ms: number, check?: () => void | Promise<void>): Promise<void> {
    return this.runUntil(this.#now + ms, check);
  }

  /** The number of timers that are set. */
  get pending(): number {
    return this.#heap.filter(({ isCleared }) => !isCleared).length;
  }

  #next(): Timer | undefined {
    while (this.#heap[0]?.isCleared === true) this.#pop();
    return this.#heap[0];
  }

  #pop(): void {
    const last = this.#heap.pop();
    if (last === undefined || this.#heap.length === 0) return;
    this.#heap[0] = last;
    let index = 0;
    for (;;) {
      const left = 2 * index + 1;
      let best = index;
      if (this.#isBefore(left, best)) best = left;
      if (this.#isBefore(left + 1, best)) best = left + 1;
      if (best === index) return;
      this.#swap(index, best);
      index = best;
    }
  }

  #rise(from: number): void {
    let index = from;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!this.#isBefore(index, parent)) return;
      this.#swap(index, parent);
      index = parent;
    }
  }

  #isBefore(a: number, b: number): boolean {
    const one = this.#heap[a];
    const other = this.#heap[b];
    if (one === undefined || other === undefined) return false;
    return one.dueAt === other.dueAt ? one.seq < other.seq : one.dueAt < other.dueAt;
  }

  #swap(a: number, b: number): void {
    const one = this.#heap[a] as Timer;
    this.#heap[a] = this.#heap[b] as Timer;
    this.#heap[b] = one;
  }
}

/** Resolves when all promise reactions have run: after one turn of the event loop, without our timers. */
export function drained(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
