import type { Clock } from "slotkeeper";
import { IndexedHeap } from "slotkeeper/parts";

/** Something that is due at a time: a session, a held poll, a host. */
export interface Due {
  agendaIndex: number;
  dueAt: number;
  /** The agenda calls it once, after removing the item. It may schedule the item again. */
  onDue(): void;
}

/**
 * All timers of the engine, on one timer of the clock. A hundred thousand sessions are a hundred thousand heap entries,
 * but one clock timer. To move a session costs O(log n), and sets the clock timer again only if the session is now the
 * earliest.
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

  /** Sets or changes the time at which `item` is due. */
  schedule(item: Due, at: number): void {
    if (this.#due.has(item) && item.dueAt === at) return;
    item.dueAt = at;
    this.#due.put(item);
    if (!this.#isFiring && (at < this.#armedAt || this.#isOverdue())) this.#arm();
  }

  cancel(item: Due): void {
    this.#due.remove(item);
    if (this.#due.size === 0) this.#disarm();
  }

  /** Runs everything that is due by the clock now, without waiting for the timer. */
  catchUp(): void {
    if (this.#isFiring) return;
    this.#disarm();
    this.#fire(Number.POSITIVE_INFINITY);
  }

  /** The time was set, so the timer may come too late. */
  followTime(): void {
    if (!this.#isFiring && this.#timer !== undefined) this.#arm();
  }

  close(): void {
    for (let item = this.#due.peek(); item !== undefined; item = this.#due.peek()) this.#due.remove(item);
    this.#disarm();
  }

  /** The clock was set ahead, so the timer is late. Items that are due must not wait for it. */
  #isOverdue(): boolean {
    return this.#armedAt + LATE_MS < this.#clock.now();
  }

  #arm(): void {
    this.#disarm();
    const next = this.#due.peek();
    if (next === undefined) return;
    const now = this.#clock.now();
    this.#armedAt = Math.max(now, next.dueAt);
    // Whole milliseconds: a tiny fraction may be too small to advance the clock, and the timer would fire forever.
    this.#timer = this.#clock.setTimer(() => this.#fire(MOST_AT_ONCE), Math.ceil(this.#armedAt - now));
  }

  #disarm(): void {
    if (this.#timer !== undefined) this.#clock.clearTimer(this.#timer);
    this.#timer = undefined;
    this.#armedAt = Number.POSITIVE_INFINITY;
  }

  /**
   * A timer may fire early or late. Only items that are due by the clock run, at most `most`; then the timer is set for
   * the rest.
   */
  #fire(most: number): void {
    this.#timer = undefined;
    this.#isFiring = true;
    const now = this.#clock.now();
    let left = most;
    for (
      let item = this.#due.peek();
      item !== undefined && item.dueAt <= now && left > 0;
      left--, item = this.#due.peek()
    ) {
      this.#due.remove(item);
      item.onDue();
    }
    this.#isFiring = false;
    this.#arm();
  }
}

/**
 * How many items run before other work of the process gets its turn. A hundred thousand hosts may be due at once, for
 * example after a pause of the whole process.
 */
const MOST_AT_ONCE = 500;
/** In a busy process, timers fire up to this late. */
const LATE_MS = 50;
