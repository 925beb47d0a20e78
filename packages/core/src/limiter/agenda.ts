/**
 * All deadlines of a limiter behind one timer: the timeouts of waiters, the ttls of slots, and the next time at which a
 * waiter might be served.
 *
 * AGENDA1  At most one timer is set, and none if nothing is due in the future.
 * AGENDA2  The timer keeps the process alive if and only if a caller waits: for a slot, or for a `run` that rejects when its
 *     slot expires.
 * AGENDA3  A deadline fires at most once, never early, and never after it was removed.
 */
import { keepAlive, startTimer } from "../clock.ts";
import { IndexedHeap } from "../indexed-heap.ts";
import type { SteadyTime } from "./steady-time.ts";

export interface AgendaEntry {
  dueAt: number;
  agendaAt: number;
  due(now: number): void;
}

export class Agenda {
  readonly #time: SteadyTime;
  readonly #onWake: (now: number) => void;
  readonly #entries = new IndexedHeap<"agendaAt", AgendaEntry>("agendaAt", (a, b) => a.dueAt < b.dueAt);
  #timer: unknown;
  #timerAt = Infinity;
  #isAwaited = false;

  /**
   * Calls `onWake` when the timer fires, once before and once after the deadlines that are due. `onWake` must call
   * `arm`.
   */
  constructor(time: SteadyTime, onWake: (now: number) => void) {
    this.#time = time;
    this.#onWake = onWake;
  }

  /** Sets or moves the deadline of an entry; `Infinity` removes it. The caller must call `arm` next. */
  set(entry: AgendaEntry, dueAt: number): void {
    entry.dueAt = dueAt;
    if (dueAt < Infinity) this.#entries.put(entry);
    else this.#entries.remove(entry);
  }

  /**
   * Sets the timer for the next deadline. A timer that would fire too early is not moved: it fires and finds nothing to
   * do.
   */
  arm(wakeAt: number, isAwaited: boolean): void {
    const nextAt = Math.min(wakeAt, this.#entries.peek()?.dueAt ?? Infinity);
    if (nextAt < this.#timerAt || (nextAt === Infinity && this.#timer !== undefined)) this.#setTimer(nextAt, isAwaited);
    else if (isAwaited !== this.#isAwaited) keepAlive(this.#timer, isAwaited);
    this.#isAwaited = isAwaited;
  }

  #setTimer(at: number, isAwaited: boolean): void {
    const { clock } = this.#time;
    if (this.#timer !== undefined) clock.clearTimer(this.#timer);
    this.#timer = at < Infinity ? startTimer(clock, () => this.#fire(), at - this.#time.now(), isAwaited) : undefined;
    this.#timerAt = at;
  }

  #fire(): void {
    this.#timer = undefined;
    // Prevents a new timer until all due entries are handled.
    this.#timerAt = -Infinity;
    const now = this.#time.now();
    // A waiter that can be served at the exact time of its timeout is served.
    this.#onWake(now);
    for (let entry = this.#entries.peek(); entry && entry.dueAt <= now; entry = this.#entries.peek()) entry.due(now);
    this.#timerAt = Infinity;
    this.#onWake(now);
  }
}
