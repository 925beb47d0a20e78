/**
 * Many deadlines, few timers. Deadlines of one duration fall due in the order in which they were set, so a plain list
 * per duration is already sorted and one timer, for its first entry, serves it. Setting, renewing and dropping one
 * are O(1). (Node does the same below `setTimeout`; doing it here saves the timer object and its bookkeeping for
 * each waiter, and works the same on every host and clock.)
 *
 * I1  A deadline comes due at most once, never before its time by the clock, and never after it was dropped.
 * I2  A list with nothing in it has no timer and is forgotten.
 * I3  The timers keep the process alive if and only if somebody awaits what one of them will bring (`pin`).
 */
import { type Clock, keepAlive } from "./clock.ts";
import { Link, LinkedList } from "./linked-list.ts";

/** The longest delay that hosts take; longer ones are waited for in steps. */
const LONGEST_DELAY_MS = 2 ** 31 - 1;

/** Whatever has a deadline extends this. */
export abstract class Deadline extends Link {
  durationMs = 0;
  dueAt = 0;
  /** Must drop it. */
  abstract due(now: number): void;
}

class DurationList extends LinkedList<Deadline> {
  timer: unknown = undefined;
}

export class Deadlines {
  readonly #clock: Clock;
  readonly #lists = new Map<number, DurationList>();
  #pins = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** How many timers are running. */
  get timers(): number {
    return this.#lists.size;
  }

  /** Sets it, or sets it anew. */
  set(deadline: Deadline, durationMs: number, now: number): void {
    // Moving to the end of its own list leaves the timer alone: it fires early, finds nothing due, and is set anew.
    if (deadline.durationMs !== durationMs) this.drop(deadline);
    deadline.durationMs = durationMs;
    deadline.dueAt = now + durationMs;
    let list = this.#lists.get(durationMs);
    if (list === undefined) {
      list = new DurationList();
      this.#lists.set(durationMs, list);
      this.#arm(list, durationMs);
    }
    list.add(deadline);
  }

  drop(deadline: Deadline): void {
    const { list, durationMs } = deadline;
    list?.remove(deadline);
    if (list !== undefined && list.first === undefined) {
      this.#clock.clearTimer((list as unknown as DurationList).timer);
      this.#lists.delete(durationMs);
    }
  }

  /** Somebody more (1) or somebody fewer (-1) awaits a deadline. */
  pin(change: 1 | -1): void {
    this.#pins += change;
    if (this.#pins < 2) for (const { timer } of this.#lists.values()) keepAlive(timer, this.#pins > 0);
  }

  #arm(list: DurationList, delayMs: number): void {
    list.timer = this.#clock.setTimer(() => this.#fire(list), Math.min(Math.ceil(delayMs), LONGEST_DELAY_MS));
    keepAlive(list.timer, this.#pins > 0);
  }

  #fire(list: DurationList): void {
    const now = this.#clock.now();
    let first = list.first;
    for (; first !== undefined && first.dueAt <= now; first = list.first) first.due(now);
    // If the list ran empty it was forgotten, and `due` may have begun a new one for the same duration.
    if (first !== undefined) this.#arm(list, first.dueAt - now);
  }
}

const byClock = new WeakMap<Clock, Deadlines>();

/** All semaphores on one clock share their timers. */
export function deadlinesOf(clock: Clock): Deadlines {
  let deadlines = byClock.get(clock);
  if (deadlines === undefined) byClock.set(clock, (deadlines = new Deadlines(clock)));
  return deadlines;
}
