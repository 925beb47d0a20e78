import type { Clock } from "slotkeeper";
import { IndexedHeap } from "./indexed-heap.ts";

/** Something with a next moment: a session, a held poll, a host. */
export interface Due {
  agendaIndex: number;
  dueAt: number;
  /** Called once, off the agenda; it may put itself back. */
  onDue(): void;
}

/**
 * All the moments of the engine on one timer. A hundred thousand sessions are a hundred thousand heap entries and one
 * timer of the clock; moving a session's next moment is O(log n) and touches the clock only when it is the earliest.
 */
export class Agenda {
  readonly #clock: Clock;
  readonly #due = new IndexedHeap<"agendaIndex", Due>("agendaIndex", (a, b) => a.dueAt < b.dueAt);
  #timer: unknown;
  #armedAt = Number.POSITIVE_INFINITY;
  #isFiring = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#due.size;
  }

  /** Sets or moves the next moment of `item`. */
  schedule(item: Due, at: number): void {
    if (this.#due.has(item) && item.dueAt === at) return;
    item.dueAt = at;
    if (this.#due.has(item)) this.#due.update(item);
    else this.#due.push(item);
    if (!this.#isFiring && (at < this.#armedAt || this.#isOverdue())) this.#arm();
  }

  cancel(item: Due): void {
    this.#due.remove(item);
    if (this.#due.size === 0) this.#disarm();
  }

  /** Does now what is due by the clock, whatever became of the timer. */
  catchUp(): void {
    if (this.#isFiring) return;
    this.#disarm();
    this.#fire();
  }

  close(): void {
    while (this.#due.pop() !== undefined);
    this.#disarm();
  }

  /** The clock was set ahead: what is scheduled now must not wait for the timer. */
  #isOverdue(): boolean {
    return this.#armedAt + LATE_MS < this.#clock.now();
  }

  #arm(): void {
    this.#disarm();
    const next = this.#due.peek();
    if (next === undefined) return;
    const now = this.#clock.now();
    this.#armedAt = Math.max(now, next.dueAt);
    // Whole milliseconds: the rest of a sum of fractions may be too small to move a clock, and the timer would fire for ever.
    this.#timer = this.#clock.setTimer(() => this.#fire(), Math.ceil(this.#armedAt - now));
  }

  #disarm(): void {
    if (this.#timer !== undefined) this.#clock.clearTimer(this.#timer);
    this.#timer = undefined;
    this.#armedAt = Number.POSITIVE_INFINITY;
  }

  /** A timer may come early or late; only what is due by the clock fires, and the rest is armed again. */
  #fire(): void {
    this.#timer = undefined;
    this.#isFiring = true;
    const now = this.#clock.now();
    for (let item = this.#due.peek(); item !== undefined && item.dueAt <= now; item = this.#due.peek()) {
      this.#due.remove(item);
      item.onDue();
    }
    this.#isFiring = false;
    this.#arm();
  }
}

/** A busy process fires its timers so late. */
const LATE_MS = 50;
