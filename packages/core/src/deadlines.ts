/**
 * Many deadlines, few timers. Deadlines of one duration fall due in the order in which they were set, so a plain list
 * per duration is already sorted and one timer, for its first entry, serves it. Setting, renewing and dropping one
 * are O(1). (Node does the same below `setTimeout`; doing it here saves the timer object and its bookkeeping for
 * each waiter, and works the same on every host and clock.)
 *
 * DEADLINE1  A deadline comes due at most once, never before its time by the clock, and never after it was dropped.
 * DEADLINE2  A list with nothing in it has no timer and is forgotten.
 * DEADLINE3  The timers keep the process alive if and only if a caller waits, for a timeout or for a slot that will expire.
 */
import { type Clock, keepAlive, startTimer } from "./clock.ts";
import { type Link, LinkedList } from "./linked-list.ts";

/** Whatever has a deadline. */
export interface Deadline extends Link {
  dueAt: number;
  /** Must drop it. */
  due(now: number): void;
}

interface DurationList extends LinkedList<Deadline> {
  durationMs: number;
  timer: unknown;
}

export class Deadlines {
  declare clock: Clock;
  /** How many wait. */
  waiting = 0;
  readonly #lists = new Map<number, DurationList>();

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Sets it, or sets it anew; `Infinity` drops it. */
  time(deadline: Deadline, durationMs: number, now: number): void {
    const before = deadline.list as DurationList | undefined;
    deadline.dueAt = now + durationMs;
    // Moving to the end of its own list leaves the timer alone: it fires early, finds nothing due, and is set anew.
    if (before?.durationMs === durationMs) return before.add(deadline);
    before?.remove(deadline);
    if (durationMs < Infinity) this.#list(durationMs).add(deadline);
    if (before && !before.first) {
      this.clock.clearTimer(before.timer);
      this.#lists.delete(before.durationMs);
    }
  }

  /** This number of waiters was added. */
  await(more: 1 | -1): void {
    this.waiting += more;
    if (this.waiting < 2) this.#keepAlive();
  }

  /** Apart from `await`, which the engine then inlines (W2). */
  #keepAlive(): void {
    for (const { timer } of this.#lists.values()) keepAlive(timer, this.waiting > 0);
  }

  #list(durationMs: number): DurationList {
    let list = this.#lists.get(durationMs);
    if (!list) {
      list = new LinkedList<Deadline>() as DurationList;
      list.durationMs = durationMs;
      this.#lists.set(durationMs, list);
      this.#arm(list, durationMs);
    }
    return list;
  }

  #arm(list: DurationList, delayMs: number): void {
    list.timer = startTimer(this.clock, () => this.#fire(list), delayMs, this.waiting > 0);
  }

  #fire(list: DurationList): void {
    const now = this.clock.now();
    let { first } = list;
    for (; first && first.dueAt <= now; first = list.first) first.due(now);
    // If the list ran empty it was forgotten, and `due` may have begun a new one for the same duration.
    if (first) this.#arm(list, first.dueAt - now);
  }
}
