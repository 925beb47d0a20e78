/**
 * The queue of tasks that can run.
 *
 * READY1  A task of a higher priority always runs before one of a lower priority.
 * READY2  Within a priority the order is first in, first out. With a `ChoiceSource`, that source chooses instead.
 * READY3  `pushLast` puts a task behind all tasks that are runnable now, including those of lower priority, for one
 *     turn.
 *
 * Cost: O(1) per push and take, plus one check of each used priority above the one taken from (there are three named
 * ones). It allocates only when a ring doubles.
 */
import type { ChoiceSource } from "./random.ts";

/**
 * Runs only while no task of a higher priority is ready. For `spawn`.
 *
 * @example
 * ```ts
 * import { delay, PRIORITY_IDLE, simulate, spawn } from "slotkeeper/effects";
 *
 * simulate(function* () {
 *   yield* spawn(delay(10), { priority: PRIORITY_IDLE });
 * });
 * ```
 */
export const PRIORITY_IDLE = 0;
/**
 * The priority of a task that does not set one.
 *
 * @example
 * ```ts
 * import { delay, PRIORITY_NORMAL, simulate, spawn } from "slotkeeper/effects";
 *
 * simulate(function* () {
 *   yield* spawn(delay(10), { priority: PRIORITY_NORMAL + 1 });
 * });
 * ```
 */
export const PRIORITY_NORMAL = 10;
/**
 * Runs before every ready task of a lower priority. For `spawn`.
 *
 * @example
 * ```ts
 * import { delay, PRIORITY_HIGH, simulate, spawn } from "slotkeeper/effects";
 *
 * simulate(function* () {
 *   yield* spawn(delay(10), { priority: PRIORITY_HIGH });
 * });
 * ```
 */
export const PRIORITY_HIGH = 20;

const SMALLEST_RING = 16;
/** A ring that grew beyond this size frees its memory when it becomes empty. */
const LARGEST_KEPT_RING = 65_536;

/** A ring buffer: the tasks of one priority. */
class Level<T> {
  readonly priority: number;
  count = 0;
  #ring: (T | undefined)[] = new Array<T | undefined>(SMALLEST_RING);
  #first = 0;

  constructor(priority: number) {
    this.priority = priority;
  }

  push(item: T): void {
    if (this.count === this.#ring.length) this.#grow();
    this.#ring[(this.#first + this.count) & (this.#ring.length - 1)] = item;
    this.count++;
  }

  /** `take(0)`. */
  shift(): T {
    const ring = this.#ring;
    const item = ring[this.#first] as T;
    ring[this.#first] = undefined;
    this.#first = (this.#first + 1) & (ring.length - 1);
    this.count--;
    if (this.count === 0 && ring.length > LARGEST_KEPT_RING) this.#reset();
    return item;
  }

  /** Takes the item `offset` places behind the first. The first item moves into its place. */
  take(offset: number): T {
    const mask = this.#ring.length - 1;
    const at = (this.#first + offset) & mask;
    const item = this.#ring[at] as T;
    if (offset !== 0) this.#ring[at] = this.#ring[this.#first];
    this.#ring[this.#first] = undefined;
    this.#first = (this.#first + 1) & mask;
    this.count--;
    if (this.count === 0 && this.#ring.length > LARGEST_KEPT_RING) this.#reset();
    return item;
  }

  #grow(): void {
    const old = this.#ring;
    const ring = new Array<T | undefined>(old.length * 2);
    for (let i = 0; i < this.count; i++) ring[i] = old[(this.#first + i) & (old.length - 1)];
    this.#ring = ring;
    this.#first = 0;
  }

  #reset(): void {
    this.#ring = new Array<T | undefined>(SMALLEST_RING);
    this.#first = 0;
  }
}

export class ReadyQueue<T extends { readonly priority: number }> {
  size = 0;
  readonly #choices: ChoiceSource | undefined;
  /** Highest priority first. Levels are never removed, because there are only a few. */
  readonly #levels: Level<T>[] = [new Level<T>(PRIORITY_NORMAL)];

  /** The only level, if there is just one. This usual case avoids the search. */
  #only: Level<T> | undefined = this.#levels[0];

  constructor(choices: ChoiceSource | undefined) {
    this.#choices = choices;
  }

  push(item: T): void {
    const only = this.#only;
    if (only !== undefined && only.priority === item.priority) only.push(item);
    else this.#level(item.priority).push(item);
    this.size++;
  }

  pushLast(item: T): void {
    // The running task was pushed once, so if there is a single level, it is the level of this task.
    if (this.#only !== undefined) return this.push(item);
    const own = this.#level(item.priority);
    const lowest =
      this.#levels.at(-1) === own ? own : this.#levels.findLast((level) => level === own || level.count > 0);
    (lowest ?? own).push(item);
    this.size++;
  }

  take(): T | undefined {
    const only = this.#only;
    if (only !== undefined && this.#choices === undefined) {
      if (only.count === 0) return undefined;
      this.size--;
      return only.shift();
    }
    const levels = this.#levels;
    for (let i = 0; i < levels.length; i++) {
      const level = levels[i] as Level<T>;
      if (level.count === 0) continue;
      this.size--;
      return level.take(this.#choices === undefined ? 0 : this.#choices.pick(level.count));
    }
    return undefined;
  }

  #level(priority: number): Level<T> {
    const levels = this.#levels;
    for (let i = 0; i < levels.length; i++)
      if ((levels[i] as Level<T>).priority === priority) return levels[i] as Level<T>;
    const level = new Level<T>(priority);
    const below = this.#levels.findIndex((other) => other.priority < priority);
    this.#only = undefined;
    this.#levels.splice(below < 0 ? this.#levels.length : below, 0, level);
    return level;
  }
}
