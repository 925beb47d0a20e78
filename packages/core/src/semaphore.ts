/// <reference lib="esnext.disposable" preserve="true" />
/** The classes that users create: a gate, either its own or that of its name, with the options of the instance. */
import { Gate } from "./gate.ts";
import { GateContext } from "./gate-context.ts";
import { type MapOptions, mapItems } from "./map-items.ts";
import { check, objectWith, type Rules, readOptions } from "./options.ts";
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
import { type Work, wrapFunction } from "./run-with-slot.ts";
import { SLOT_ID, type Slot } from "./slot.ts";
import { type SemaphoreStats, statsOf } from "./stats.ts";

/** Options of `Semaphore` and `Mutex`. */
export interface SemaphoreOptions extends PolicyOptions {
  /** Instances with the same name and registry share their slots. @defaultValue no name; slots are not shared */
  name?: string | undefined;
  /** The registry that contains the name. @defaultValue `defaultRegistry` */
  registry?: SemaphoreRegistry | undefined;
}

const RULES: Rules<SemaphoreOptions> = { ...POLICY_RULES, registry: objectWith("open") };

/**
 * A counting semaphore. Waiters get slots in order of arrival, by direct hand-off: a released slot belongs to the next
 * waiter before `release` returns. So no other call can take it in between, and narrow waiters never overtake a wide one.
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
   * @param slots an integer from 1 up, or `Infinity` for no limit. Slots are counted in either case.
   * @throws {RangeError} if `slots` or a number among the options is out of range.
   * @throws {TypeError} if an option is unknown or of another type.
   * @throws {CapacityMismatchError} if the name is in use with another number of slots.
   */
  constructor(slots: number, options?: SemaphoreOptions) {
    check("slots", SLOTS, slots);
    const given = readOptions(options, RULES);
    const policy = resolvePolicy({ ...PLAIN, registry: defaultRegistry }, given);
    const { name, clock, registry } = policy;
    this.#policy = policy;
    this.#gate = name === undefined ? new Gate(slots, new GateContext(clock)) : registry.open(name, slots, given.clock);
  }

  /** The name from the options. */
  get name(): string | undefined {
    return this.#policy.name;
  }

  /** Number of slots; `Infinity` if unlimited. */
  get capacity(): number {
    return this.#current.capacity;
  }

  /** Slots held: the sum of their widths. */
  get inUse(): number {
    return this.#current.inUse;
  }

  /** Number of free slots. After a shrink, more slots may be held than there are; then it is 0. */
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
   * @returns a promise of a slot. It rejects with `AcquireTimeoutError`, `QueueFullError` or `ClosedError`. If the signal
   * aborts, it rejects with the reason of the signal. If options are invalid, it rejects at once with a `TypeError` or
   * `RangeError`.
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
   * Returns a slot, or `undefined` if no slot is free, if others wait, or after `close`. Never waits.
   *
   * @throws {TypeError} if an option is unknown.
   * @throws {RangeError} if `width` is more than the capacity.
   */
  tryAcquire(options?: TryAcquireOptions): Slot | undefined {
    return this.#current.tryAcquire(this.#policy, options);
  }

  /**
   * Calls `work` while holding a slot. If a slot is free, the work starts before `run` returns. Otherwise it starts later,
   * in the async context of this call.
   *
   * @returns a promise of the result of `work`. It rejects with the error of the work, or in the same cases as `acquire`.
   * It also rejects with `SlotExpiredError` if the slot expires and `abortOnExpiry` is set.
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
   * Calls `fn` for every item of an iterable or async iterable, with a slot for each item. Returns the results in the order
   * of the items. After a failure no further item starts and the call rejects with that failure, unless `stopOnError` is
   * false.
   *
   * @throws {AggregateError} with all failures, if `stopOnError` is false.
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
   * Returns a function that calls `fn` with its arguments and its `this` while holding a slot.
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
  wrap<This, Args extends unknown[], T>(
    fn: (this: This, ...args: Args) => T | Promise<T>,
  ): (this: This, ...args: Args) => Promise<Awaited<T>> {
    return wrapFunction(this, fn);
  }

  /**
   * Releases the slot that has this `slot.id`. Returns `true` only if that id held a slot. To release a slot that you have,
   * call `slot.release()`.
   *
   * @throws {TypeError} if `id` is not a string.
   */
  release(id: string): boolean {
    check("id", SLOT_ID, id);
    return this.#current.context.slots.get(id)?.release() ?? false;
  }

  /**
   * Changes the number of slots. Growing serves waiters at once. Shrinking takes no slot from a holder. Waiters whose width
   * exceeds the new number reject with `RangeError`.
   *
   * @throws {RangeError} if `slots` is not an integer from 1 up or `Infinity`.
   */
  resize(slots: number): void {
    check("slots", SLOTS, slots);
    this.#current.resize(slots, this.#policy);
  }

  /**
   * Rejects all waiters with `reason`. The semaphore remains usable.
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
   * Closes the semaphore: waiters and later acquires reject with `ClosedError`. Holders may still release. The reason
   * becomes the `cause` of that error. If the reason is a string, it is also the message. Calling `close` again changes
   * nothing.
   */
  close(reason?: unknown): void {
    this.#current.close(this.#policy, reason);
  }

  /** Resolves when no slot is held. */
  idle(): Promise<void> {
    return this.#current.idle();
  }

  /** Current use, and counts since the start. */
  stats(): SemaphoreStats {
    return statsOf(this.#current);
  }

  /**
   * The gate for the next call. The registry removes a named gate that has been idle for long. Then this instance switches
   * to the gate that has the name now. An instance whose own gate is closed keeps that gate, so it stays closed. If the
   * gate of the name was closed before this instance used it, the call goes there, but the instance does not keep it.
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
