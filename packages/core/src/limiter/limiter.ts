/// <reference lib="esnext.disposable" preserve="true" />
/**
 * The public class: slots, rates, budgets, priorities and keys behind one `acquire`. `limiter-gate.ts` has the
 * algorithm.
 */
import { type MapOptions, mapItems } from "../map-items.ts";
import { boolean, callback, check, numberFrom, readOptions } from "../options.ts";
import { runWithSlot, wrapFunction } from "../run-with-slot.ts";
import { SLOT_ID } from "../slot.ts";
import type { SemaphoreStats } from "../stats.ts";
import type { Ask, LimiterAcquireOptions, LimiterRunOptions, LimiterTryOptions } from "./ask.ts";
import { LimiterGate } from "./limiter-gate.ts";
import type { LimiterSlot } from "./limiter-slot.ts";
import { AMOUNT, type LimiterOptions, type LimiterUpdate, readFields } from "./options.ts";
import { judged, type LimiterWork } from "./overload.ts";
import { clearedError } from "./refusals.ts";
import { readerOf, type Source } from "./source.ts";
import { updateLimits } from "./update-limits.ts";

/** A budget in `Limiter.stats()`. */
export interface BudgetStats {
  /** Units per `perMs`. */
  readonly limit: number;
  /** The length of the window, in milliseconds. */
  readonly perMs: number;
  /** The largest number of units that the budget can save up. */
  readonly burst: number;
  /** The units that can be granted now; negative while the budget is in debt. */
  readonly available: number;
}

/** What `Limiter.stats()` returns. */
export interface LimiterStats<B extends string = string> extends SemaphoreStats {
  /** The number of releases whose outcome was `overload`. */
  readonly overloads: number;
  /** Whether the limiter is paused. */
  readonly paused: boolean;
  /** The number of keys in memory, including idle ones. */
  readonly keys: number;
  /** The common budgets by name. The budgets of single keys are not included. */
  readonly budgets: { readonly [Name in B]?: BudgetStats };
}

const ANSWER_RULES = { remaining: AMOUNT, resetMs: numberFrom(0) };
const PAUSE_RULES = { refuse: boolean };

/**
 * Combines slots, budgets per time, limits per key, priorities and adaptive slots. A waiter gets everything that it
 * needs at once, or nothing. Lower levels go first. Within a level, the order is first come, first served; with
 * `perKey`, the key with the smallest charged share goes first. Cheaper requests do not overtake a request that must
 * wait for a common budget.
 *
 * @throws {TypeError} if an option is unknown or has the wrong type.
 * @throws {RangeError} if a number is out of range, or a default cost is larger than the burst of its budget.
 * @example
 * ```ts
 * import { Limiter } from "slotkeeper/limiter";
 *
 * const api = new Limiter({
 *   slots: 20,
 *   budgets: { requests: { limit: 500, perMs: 60_000 }, tokens: { limit: 200_000, perMs: 60_000, burst: 50_000 } },
 * });
 * const answer = await api.run(
 *   async (slot) => {
 *     const response = await fetch("https://example.com");
 *     slot.settle({ tokens: 1_234 });
 *     return response;
 *   },
 *   { cost: { tokens: 3_000 } },
 * );
 * ```
 */
export class Limiter<B extends string = string> {
  readonly #gate: LimiterGate;

  constructor(options: LimiterOptions<B> = {}) {
    this.#gate = new LimiterGate(options);
  }

  /** The name given in the options; it only labels errors and events. */
  get name(): string | undefined {
    return this.#gate.policy.name;
  }

  /** The number of slots; with `adaptive`, the current number. */
  get capacity(): number {
    return this.#gate.capacity;
  }

  /** Slots held. */
  get inUse(): number {
    return this.#gate.inUse;
  }

  /** Slots that are free. */
  get available(): number {
    return Math.max(0, this.#gate.capacity - this.#gate.inUse);
  }

  /** Number of waiters. */
  get waiting(): number {
    return this.#gate.waiting;
  }

  /**
   * Whether all slots are in use, a caller waits, or the limiter is paused. Budgets are not considered, because they
   * depend on the cost of the request.
   */
  get locked(): boolean {
    return this.available === 0 || this.waiting > 0 || this.paused;
  }

  /** Whether `pause` was called and `resume` was not. */
  get paused(): boolean {
    return this.#gate.paused !== "no";
  }

  /** Whether `close` was called. */
  get closed(): boolean {
    return Boolean(this.#gate.closed);
  }

  /** The number of keys in memory, including idle ones. */
  get size(): number {
    return this.#gate.ledger.keys.size;
  }

  /** Waits until a slot is free and the budgets can pay the cost. */
  acquire(options?: LimiterAcquireOptions<B>): Promise<LimiterSlot<B>> {
    try {
      return Promise.resolve(this.#gate.enter(this.#gate.read(options)));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Returns a slot, or `undefined` if the request would have to wait, while paused, or after `close`. */
  tryAcquire(options?: LimiterTryOptions<B>): LimiterSlot<B> | undefined {
    return this.#gate.tryEnter(options);
  }

  /** Runs the work while holding a slot. If a slot is available at once, the work starts before this method returns. */
  run<T>(work: LimiterWork<T, B>, options?: LimiterRunOptions<Awaited<T>, B>): Promise<Awaited<T>> {
    try {
      if (typeof work !== "function") check("work", callback, work);
      const gate = this.#gate;
      const ask = gate.read(options) as typeof options;
      return runWithSlot(
        gate.enter(ask as Ask),
        gate.policy,
        judged(work as LimiterWork<T>, ask?.isOverload),
        ask?.signal,
      );
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * Runs `fn` for every item and returns the results in the order of the items. After a failure, no new item starts.
   */
  async map<Item, T>(
    items: Source<Item>,
    fn: (item: Item, index: number) => T | Promise<T>,
    options?: MapOptions,
  ): Promise<Awaited<T>[]> {
    const reader = readerOf("items", items);
    const iterator = { next: async () => reader.next() };
    const close = (): void => void reader.stop().catch(() => {});
    return mapItems(this, this.#gate.policy, { [Symbol.asyncIterator]: () => iterator }, fn, options, close);
  }

  /** Returns a function that calls `fn` with its arguments and its `this` while holding a slot. */
  wrap<This, Args extends unknown[], T>(
    fn: (this: This, ...args: Args) => T | Promise<T>,
    options?: LimiterRunOptions<Awaited<T>, B>,
  ): (this: This, ...args: Args) => Promise<Awaited<T>> {
    const given = this.#gate.read(options) as typeof options;
    return wrapFunction(this, fn, given);
  }

  /**
   * Releases by `slot.id`. `true` only if that id held a slot. To release a slot that you have, call `slot.release()`.
   *
   * @throws {TypeError} if `id` is not a string.
   */
  release(id: string): boolean {
    check("id", SLOT_ID, id);
    return this.#gate.byId.get(id)?.release() ?? false;
  }

  /**
   * Lowers a budget to the amount that the upstream says is left. It never raises the budget. If `remaining` is 0,
   * nothing is granted for `resetMs`.
   */
  learn(budget: B, answer: { readonly remaining: number; readonly resetMs?: number | undefined }): void {
    const gate = this.#gate;
    const learned = gate.ledger.budget(budget);
    const { remaining, resetMs } = readFields("answer", answer, ANSWER_RULES);
    check("answer.remaining", AMOUNT, remaining);
    const now = gate.time.now();
    learned.learn(remaining, resetMs, now);
    // The timer may be set for a time at which this budget would have sufficed.
    if (gate.waiting > 0) gate.serve(now);
  }

  /**
   * Grants nothing until `resume`. Holders keep their slots. With `refuse`, new callers are rejected with
   * `QueueFullError` instead of waiting.
   */
  pause(options: { refuse?: boolean | undefined } = {}): void {
    const { refuse } = readOptions(options, PAUSE_RULES);
    this.#gate.paused = refuse ? "refusing" : "waiting";
    this.#gate.serve(this.#gate.time.now());
  }

  /** Ends a pause. Budgets continue to fill during a pause. */
  resume(): void {
    this.#gate.paused = "no";
    this.#gate.serve(this.#gate.time.now());
  }

  /** Changes limits of a running limiter. Charges stay charged, and holders keep their slots. */
  update(options: LimiterUpdate<B>): void {
    updateLimits(this.#gate, options);
  }

  /** Rejects all current waiters with the reason. The limiter stays usable. @defaultValue an `AbortError` */
  clear(reason: unknown = clearedError(this.#gate)): void {
    this.#gate.refuseAll("aborted", reason);
  }

  /**
   * Rejects waiters and later acquires with `ClosedError`. Holders can still release. A string becomes the message of
   * the error; any other reason becomes its `cause`.
   */
  close(reason?: unknown): void {
    this.#gate.close(reason);
  }

  /** Resolves when nothing is held and no caller waits. */
  idle(): Promise<void> {
    const { inUse, waiting, onIdle } = this.#gate;
    return new Promise((resolve) => (inUse + waiting > 0 ? onIdle.push(resolve) : resolve()));
  }

  /** Removes idle keys whose budgets are full again, and returns how many it removed. */
  sweep(): number {
    return this.#gate.ledger.keys.sweep(this.#gate.time.now());
  }

  /** Returns limits, current use, budgets, and the counters since the limiter was created. */
  stats(): LimiterStats<B> {
    const { name, capacity, inUse, waiting, paused, size: keys } = this;
    const { counters, overloads, ledger, time } = this.#gate;
    const now = time.now();
    const budgets = ledger.names.flatMap((budget, index) => {
      const common = ledger.common[index];
      if (!common) return [];
      const { limit, perMs, burst } = common.limits;
      return [[budget, { limit, perMs, burst, available: common.available(now) }]];
    });
    return {
      name,
      capacity,
      inUse,
      waiting,
      percent: (inUse / capacity) * 100,
      ...counters,
      overloads,
      paused,
      keys,
      budgets: Object.fromEntries(budgets) as LimiterStats<B>["budgets"],
    };
  }
}
