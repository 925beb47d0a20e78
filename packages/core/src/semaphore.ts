/// <reference lib="esnext.disposable" preserve="true" />
/** The primitive that users meet: a `Gate`, found by name or its own, and the options of this instance. */
import { Gate } from "./gate.ts";
import { GateContext } from "./gate-context.ts";
import { type MapOptions, mapItems } from "./map-items.ts";
import { callback, check, objectWith, type Rules } from "./options.ts";
import {
  type AcquireOptions,
  PLAIN,
  POLICY_RULES,
  type Policy,
  type PolicyOptions,
  resolvePolicy,
  SLOTS,
  type TryAcquireOptions,
} from "./policy.ts";
import { defaultRegistry, type SemaphoreRegistry } from "./registry.ts";
import type { Work } from "./run-with-slot.ts";
import type { Slot } from "./slot.ts";
import { type SemaphoreStats, statsOf } from "./stats.ts";

/** Options of `Semaphore` and `Mutex`. */
export interface SemaphoreOptions extends PolicyOptions {
  /** Same name and same registry: the same slots, in every instance. @defaultValue no name, slots of its own */
  name?: string | undefined;
  /** Where the name is looked up. @defaultValue `defaultRegistry` */
  registry?: SemaphoreRegistry | undefined;
}

const RULES: Rules<SemaphoreOptions> = { ...POLICY_RULES, registry: objectWith("open") };

/**
 * A counting semaphore. Waiters are served in the order of their arrival, by direct hand-off: a slot that is released
 * belongs to the next waiter before `release` returns, so no call can slip in between, and a wide waiter at the head is
 * never overtaken by narrow ones.
 *
 * @example
 * ```ts
 * import { Semaphore } from "slotkeeper";
 *
 * const db = new Semaphore(5, { name: "db", acquireTimeoutMs: 1_000 });
 * const response = await db.run(() => fetch("https://example.com"));
 * ```
 */
export class Semaphore {
  readonly #policy: Policy & { registry: SemaphoreRegistry };
  #gate: Gate;

  /**
   * @param slots an integer from 1 up, or `Infinity`: unlimited, but counted.
   * @throws {RangeError} if `slots` or a number among the options is out of range.
   * @throws {TypeError} if an option is unknown or of another type.
   * @throws {CapacityMismatchError} if the name is in use with another number of slots.
   */
  constructor(slots: number, options: SemaphoreOptions = {}) {
    check("slots", SLOTS, slots);
    const policy = resolvePolicy({ ...PLAIN, registry: defaultRegistry }, RULES, options);
    const { name, clock, registry } = policy;
    this.#policy = policy;
    this.#gate =
      name === undefined ? new Gate(slots, new GateContext(clock)) : registry.open(name, slots, options.clock);
  }

  /** The name from the options. */
  get name(): string | undefined {
    return this.#policy.name;
  }

  /** How many slots there are. */
  get capacity(): number {
    return this.#current.capacity;
  }

  /** Slots held: the sum of their widths. */
  get inUse(): number {
    return this.#current.inUse;
  }

  /** Slots that are free: 0 if more are held than there are, after a shrink. */
  get available(): number {
    const { capacity, inUse } = this.#current;
    return Math.max(0, capacity - inUse);
  }

  /** Number of waiters. */
  get waiting(): number {
    return this.#current.waiting;
  }

  /** Whether an `acquire` would have to wait now. */
  get locked(): boolean {
    return this.available === 0 || this.waiting > 0;
  }

  /** Whether `close` was called. */
  get closed(): boolean {
    return Boolean(this.#current.context.closed);
  }

  /**
   * Waits for a slot.
   *
   * @returns a promise that rejects with `AcquireTimeoutError`, `QueueFullError` or `ClosedError`; with the signal's own
   * reason; or, for options that make no sense, at once with a `TypeError` or `RangeError`.
   * @example
   * ```ts
   * import { Semaphore } from "slotkeeper";
   *
   * const sem = new Semaphore(2);
   * const slot = await sem.acquire({ timeoutMs: 500, signal: AbortSignal.timeout(1_000) });
   * try {
   *   console.log(slot.number);
   * } finally {
   *   slot.release();
   * }
   * ```
   */
  acquire(options?: AcquireOptions): Promise<Slot> {
    return this.#current.acquire(this.#policy, options);
  }

  /**
   * Returns a slot, or `undefined` if none is free, if others wait, or after `close`. Never waits.
   *
   * @throws {TypeError} if an option is unknown.
   * @throws {RangeError} if `width` is more than the capacity.
   */
  tryAcquire(options?: TryAcquireOptions): Slot | undefined {
    return this.#current.tryAcquire(this.#policy, options);
  }

  /**
   * Does the work while holding a slot. If one is free, the work starts before this returns; else in the async context of
   * this call.
   *
   * @returns what the work returns. Rejects with what the work throws, as `acquire` does, and with `SlotExpiredError`
   * when the slot expires and `abortOnExpiry` is set.
   * @example
   * ```ts
   * import { Semaphore } from "slotkeeper";
   *
   * const sem = new Semaphore(2, { ttlMs: 10_000, abortOnExpiry: true });
   * const response = await sem.run(({ signal }) => fetch("https://example.com", { signal }));
   * ```
   */
  run<T>(work: Work<T>, options?: AcquireOptions): Promise<Awaited<T>> {
    return this.#current.run(this.#policy, work, options);
  }

  /**
   * Runs `fn` for every item of an iterable or async iterable, each with a slot; gives the results in the order of the
   * items. After a failure no further item starts and the call rejects with it, unless `stopOnError` is false.
   *
   * @throws {AggregateError} of all failures, with `stopOnError: false`.
   * @example
   * ```ts
   * import { Semaphore } from "slotkeeper";
   *
   * const urls = ["https://example.com/1", "https://example.com/2"];
   * const pages = await new Semaphore(2).map(urls, (url) => fetch(url));
   * ```
   */
  map<Item, T>(
    items: Iterable<Item> | AsyncIterable<Item>,
    fn: (item: Item, index: number) => T | Promise<T>,
    options?: MapOptions,
  ): Promise<Awaited<T>[]> {
    return mapItems(this, this.#policy, items, fn, options);
  }

  /**
   * Returns a function that does the same, but holds a slot during each call.
   *
   * @throws {TypeError} if `fn` is not a function.
   * @example
   * ```ts
   * import { Semaphore } from "slotkeeper";
   *
   * const limitedFetch = new Semaphore(2).wrap(fetch);
   * const response = await limitedFetch("https://example.com");
   * ```
   */
  wrap<Args extends unknown[], T>(fn: (...args: Args) => T | Promise<T>): (...args: Args) => Promise<Awaited<T>> {
    check("fn", callback, fn);
    return (...args) => this.run(() => fn(...args));
  }

  /** Releases the slot that has this `slot.id`. Returns `true` only if that id held a slot. */
  release(id: string): boolean {
    return this.#current.context.slots.get(id)?.release() ?? false;
  }

  /**
   * Growing serves waiters at once. Shrinking evicts no holder; waiters that have become too wide reject with `RangeError`.
   *
   * @throws {RangeError} if `slots` is not an integer from 1 up or `Infinity`.
   */
  resize(slots: number): void {
    check("slots", SLOTS, slots);
    this.#current.resize(slots, this.#policy);
  }

  /**
   * Rejects all waiters, and leaves the semaphore usable: with the reason itself, by default an `AbortError`.
   *
   * @defaultValue `reason`: a `DOMException` named `AbortError`.
   * @example
   * ```ts
   * import { Semaphore } from "slotkeeper";
   *
   * new Semaphore(2).clear(new Error("the user left"));
   * ```
   */
  clear(reason: unknown = new DOMException("The semaphore was cleared", "AbortError")): void {
    this.#current.clear("aborted", reason);
  }

  /**
   * Waiters and later acquires reject with `ClosedError`; holders may still release. The reason becomes the `cause` of
   * that error, and its message if it is a string. Calling it again changes nothing.
   */
  close(reason?: unknown): void {
    this.#current.close(this.#policy, reason);
  }

  /** Resolves when nothing is held. */
  idle(): Promise<void> {
    return this.#current.idle();
  }

  /** Use now, and what was counted since the beginning. */
  stats(): SemaphoreStats {
    return statsOf(this.#current);
  }

  /**
   * A named gate is dropped when idle for long; then whatever gate has the name now is ours. A gate that was closed
   * while it was ours stays ours, so that closed means closed; one that was closed before is only asked.
   */
  get #current(): Gate {
    const { name, context } = this.#gate;
    if (name === undefined || context.closed) return this.#gate;
    const gate = this.#policy.registry.current(this.#gate);
    if (!gate.context.closed) this.#gate = gate;
    return gate;
  }
}

/**
 * A `Semaphore` with one slot.
 *
 * @example
 * ```ts
 * import { writeFile } from "node:fs/promises";
 * import { Mutex } from "slotkeeper";
 *
 * const lock = new Mutex();
 * await lock.run(() => writeFile("state.json", "{}"));
 * ```
 */
export class Mutex extends Semaphore {
  constructor(options?: SemaphoreOptions) {
    super(1, options);
  }
}
