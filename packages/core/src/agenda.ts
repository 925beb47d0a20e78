/**
 * Everything of a limiter or of an engine that is due at some time, behind one timer of the clock. A hundred thousand
 * sessions are a hundred thousand heap entries, but one timer. To move one costs O(log n), and sets the timer again only
 * if it is now the earliest. (A semaphore has few durations, and needs no heap for them: `deadlines.ts`.)
 *
 * AGENDA1  At most one timer is set, and none if nothing is due in the future.
 * AGENDA2  An item is due at most once, never early by the clock, and never after it was canceled.
 * AGENDA3  The timer keeps the process alive, unless `keepAlive` said that it should not.
 */
import { type Clock, keepAlive, startTimer } from "./clock.ts";
import { IndexedHeap } from "./indexed-heap.ts";

/** What an agenda can schedule. Only the agenda writes the two numbers. */
export interface Due {
  dueAt: number;
  /** −1 if nothing is scheduled. */
  agendaAt: number;
  /** The agenda calls it once, after removing the item. It may schedule the item again. */
  due(now: number): void;
}

/** Schedules items behind one timer of the clock. */
export class Agenda {
  readonly #clock: Clock;
  readonly #items = new IndexedHeap<"agendaAt", Due>("agendaAt", (a, b) => a.dueAt < b.dueAt);
  #timer: unknown;
  #armedAt = Infinity;
  #isFiring = false;
  #isAwaited = true;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Sets or changes the time at which `item` is due. `Infinity` cancels it. */
  schedule(item: Due, at: number): void {
    if (at === Infinity) return this.cancel(item);
    if (this.#items.has(item) && item.dueAt === at) return;
    item.dueAt = at;
    this.#items.put(item);
    // The timer is not moved to a later time: it fires, finds nothing due, and is set again.
    if (!this.#isFiring && (at < this.#armedAt || this.#isOverdue())) this.#arm();
  }

  cancel(item: Due): void {
    this.#items.remove(item);
    if (this.#items.size === 0) this.#disarm();
  }

  keepAlive(isAwaited: boolean): void {
    if (isAwaited !== this.#isAwaited) keepAlive(this.#timer, isAwaited);
    this.#isAwaited = isAwaited;
  }

  /** Runs everything that is due by the clock now, without waiting for the timer. */
  catchUp(): void {
    if (this.#isFiring) return;
    this.#disarm();
    this.#fire(Infinity);
  }

  /** The time was set, so the timer may come too late. */
  followTime(): void {
    if (!this.#isFiring && this.#timer !== undefined) this.#arm();
  }

  close(): void {
    for (let item = this.#items.peek(); item; item = this.#items.peek()) this.#items.remove(item);
    this.#disarm();
  }

  /** The clock was set ahead, so the timer is late. Items that are due must not wait for it. */
  #isOverdue(): boolean {
    return this.#armedAt + LATE_MS < this.#clock.now();
  }

  #arm(): void {
    this.#disarm();
    const next = this.#items.peek();
    if (!next) return;
    const now = this.#clock.now();
    this.#armedAt = Math.max(now, next.dueAt);
    this.#timer = startTimer(this.#clock, () => this.#fire(MOST_AT_ONCE), this.#armedAt - now, this.#isAwaited);
  }

  #disarm(): void {
    if (this.#timer !== undefined) this.#clock.clearTimer(this.#timer);
    this.#timer = undefined;
    this.#armedAt = Infinity;
  }

  /** A timer may fire early or late. Only what is due by the clock runs, at most `most`; the timer is set for the rest. */
  #fire(most: number): void {
    this.#timer = undefined;
    this.#isFiring = true;
    const now = this.#clock.now();
    let left = most;
    for (let item = this.#items.peek(); item && item.dueAt <= now && left > 0; left--, item = this.#items.peek()) {
      this.#items.remove(item);
      item.due(now);
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
