/**
 * Many deadlines with few timers. Deadlines of the same duration fall due in the order in which they were set. So a plain
 * list per duration is already sorted, and one timer for its first entry is enough. Setting, renewing and removing a
 * deadline take O(1) time. Node does the same inside `setTimeout`. Doing it here saves a timer object for each waiter, and
 * works the same on every host and clock.
 *
 * DEADLINE1  A deadline falls due at most once, never early by the clock, and never after it was removed.
 * DEADLINE2  An empty list has no timer and is removed.
 * DEADLINE3  The timers keep the process alive if and only if a caller waits: for a slot, or for a `run` that rejects when
 *     its slot expires.
 */
import { type Clock, keepAlive, startTimer } from "./clock.ts";
import { type Link, LinkedList } from "./linked-list.ts";

/** The timeout of a waiter or the expiry of a slot. */
export interface Deadline extends Link {
  /** When it falls due, in milliseconds of the clock. */
  dueAt: number;
  /** Called when it falls due. Must remove the deadline. */
  due(now: number): void;
}

/** The deadlines of one duration, the first due first. */
interface DurationList extends LinkedList<Deadline> {
  durationMs: number;
  timer: unknown;
}

export class Deadlines {
  declare clock: Clock;
  /** The number of waiters. */
  waiting = 0;
  /** The number of `run` calls that end when their slot expires. */
  runs = 0;
  readonly #lists = new Map<number, DurationList>();

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Sets or replaces a deadline: `durationMs` after `now`. `Infinity` removes it. */
  time(deadline: Deadline, durationMs: number, now: number): void {
    const before = deadline.list as DurationList | undefined;
    deadline.dueAt = now + durationMs;
    // Moving to the end of the same list does not change its timer. If that fires early, it finds nothing due and starts
    // again.
    if (before?.durationMs === durationMs) return before.add(deadline);
    before?.remove(deadline);
    if (durationMs < Infinity) this.#list(durationMs).add(deadline);
    if (before && !before.first) {
      this.clock.clearTimer(before.timer);
      this.#lists.delete(before.durationMs);
    }
  }

  /** Adds one waiter, or removes one. 0 after a change of `runs`. */
  await(more: 1 | 0 | -1): void {
    this.waiting += more;
    if (this.waiting < 2) this.#keepAlive();
  }

  get #isAwaited(): boolean {
    return this.waiting + this.runs > 0;
  }

  /** Separate from `await`, so that the engine inlines `await` (W2). */
  #keepAlive(): void {
    for (const { timer } of this.#lists.values()) keepAlive(timer, this.#isAwaited);
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
    list.timer = startTimer(this.clock, () => this.#fire(list), delayMs, this.#isAwaited);
  }

  #fire(list: DurationList): void {
    const now = this.clock.now();
    let { first } = list;
    for (; first && first.dueAt <= now; first = list.first) first.due(now);
    // If the list is empty now, it was removed, and `due` may have created a new one for the same duration.
    if (first) this.#arm(list, first.dueAt - now);
  }
}
