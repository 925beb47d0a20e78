/// <reference lib="esnext.disposable" preserve="true" />
/** What users meet: slots, rates, budgets, priorities and keys behind one `acquire`. How it works: `limiter-gate.ts`. */
import type { Counters } from "../gate-context.ts";
import { boolean, callback, check, checkOptions, numberFrom } from "../options.ts";
import { LimiterGate } from "./limiter-gate.ts";
import type { LimiterSlot } from "./limiter-slot.ts";
import { type MapOptions, mapThrough } from "./map.ts";
import { AMOUNT, checkFields, type LimiterOptions, type LimiterUpdate } from "./options.ts";
import { clearedError } from "./refusals.ts";
import { type IsOverload, type LimiterWork, runLimited } from "./run-limited.ts";
import type { Source } from "./source.ts";
import { updateLimits } from "./update-limits.ts";

/** Options of `Limiter.tryAcquire`. */
export interface LimiterTryOptions<B extends string = string> {
  /** Whose limits count beside the common ones, if the limiter has limits for each key. */
  key?: unknown;
  /** What it costs, by the name of the budget. A budget that is left out costs its `default`. */
  cost?: { readonly [Name in B]?: number | undefined } | undefined;
  /** Its priority: 0, the default, goes first. */
  level?: number | undefined;
}

/** Options of `Limiter.acquire`. */
export interface LimiterAcquireOptions<B extends string = string> extends LimiterTryOptions<B> {
  /** Ends the wait: the promise rejects with the signal's own reason. */
  signal?: AbortSignal | undefined;
  /** Longest wait; 0 does not wait, `Infinity` for ever. */
  timeoutMs?: number | undefined;
}

/** Options of `Limiter.run` and `Limiter.wrap`. */
export interface LimiterRunOptions<T = unknown, B extends string = string> extends LimiterAcquireOptions<B> {
  /** Whether the work's result, or its failure, means that the upstream is overloaded. */
  isOverload?: IsOverload<T> | undefined;
}

/** A budget in `Limiter.stats()`. */
export interface BudgetStats {
  readonly limit: number;
  readonly perMs: number;
  readonly burst: number;
  /** What could be granted now; below zero in debt. */
  readonly available: number;
}

/** What `Limiter.stats()` returns. */
export interface LimiterStats<B extends string = string> extends Counters {
  readonly name: string | undefined;
  /** Slots: those that there are now, if they are adaptive. */
  readonly capacity: number;
  readonly inUse: number;
  readonly waiting: number;
  /** In use of the capacity, 0…100; 0 if unlimited. */
  readonly percent: number;
  /** Answers that said so. */
  readonly overloads: number;
  readonly paused: boolean;
  /** How many keys are kept, idle ones included. */
  readonly keys: number;
  readonly budgets: { readonly [Name in B]?: BudgetStats };
}

const ANSWER_RULES = { remaining: AMOUNT, resetMs: numberFrom(0) };
const PAUSE_RULES = { refuse: boolean };

/**
 * Slots, budgets per time, limits per key, priorities and adaptive slots in one gate. A waiter gets everything that it
 * needs at once, or nothing. Lower levels go first; inside a level it is first come, first served, or, with `perKey`,
 * the key that was charged least. A request that cannot be paid yet is not overtaken by cheaper ones.
 *
 * @throws {TypeError} if an option is unknown or of another type.
 * @throws {RangeError} if a number is out of range, or a cost is more than a budget's burst.
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

  /** Slots: those that there are now, if they are adaptive. */
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

  /** All slots are in use, or a caller waits, or it is paused. Budgets are not looked at: they depend on the cost. */
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

  /** How many keys are kept, idle ones included. */
  get size(): number {
    return this.#gate.ledger.keys.size;
  }

  /** Waits for a slot and for what the request costs. */
  acquire(options?: LimiterAcquireOptions<B>): Promise<LimiterSlot<B>> {
    return Promise.resolve(this.#gate.enter(options));
  }

  /** Returns a slot, or `undefined` if the request would have to wait, while paused, or after `close`. */
  tryAcquire(options?: LimiterTryOptions<B>): LimiterSlot<B> | undefined {
    return this.#gate.tryEnter(options);
  }

  /** Does the work while holding a slot. If it can be had at once, the work starts before this returns. */
  run<T>(work: LimiterWork<T, B>, options?: LimiterRunOptions<Awaited<T>, B>): Promise<Awaited<T>> {
    if (typeof work !== "function") return Promise.reject(callback("work", work));
    return runLimited(this.#gate.enter(options), this.#gate, work as LimiterWork<T>, options);
  }

  /** Runs `fn` for every item; results in the order of the items. After a failure no new item starts. */
  map<Item, T>(
    items: Source<Item>,
    fn: (item: Item, index: number) => T | Promise<T>,
    options?: MapOptions,
  ): Promise<Awaited<T>[]> {
    return mapThrough(this, items, fn, options);
  }

  /** Returns a function that does the same, but each call first waits for a slot. */
  wrap<Args extends unknown[], T>(
    fn: (...args: Args) => T | Promise<T>,
    options?: LimiterRunOptions<Awaited<T>, B>,
  ): (...args: Args) => Promise<Awaited<T>> {
    check("fn", callback, fn);
    checkOptions(options, this.#gate.askRules);
    return (...args) => this.run(() => fn(...args), options);
  }

  /** Releases by `slot.id`. `true` only if that id held a slot. */
  release(id: string): boolean {
    return this.#gate.byId.get(id)?.release() ?? false;
  }

  /** Lowers a budget to what the upstream says is left; never raises it. With 0 left, nothing is granted for `resetMs`. */
  learn(budget: B, answer: { readonly remaining: number; readonly resetMs?: number | undefined }): void {
    const gate = this.#gate;
    const learned = gate.ledger.budget(budget);
    checkFields("answer", answer, ANSWER_RULES);
    const { remaining, resetMs } = answer;
    check("answer.remaining", AMOUNT, remaining);
    const now = gate.time.now();
    learned.learn(remaining, resetMs, now);
    // The timer may be set for a time at which this budget would have sufficed.
    if (gate.waiting > 0) gate.serve(now);
  }

  /** Grants nothing until `resume`. Who holds a slot keeps it; with `refuse`, newcomers are refused and do not wait. */
  pause(options: { refuse?: boolean | undefined } = {}): void {
    checkOptions(options, PAUSE_RULES);
    this.#gate.paused = options.refuse ? "refusing" : "waiting";
    this.#gate.rearm();
  }

  /** Budgets and slots are what they were, and what has flowed in meanwhile. */
  resume(): void {
    this.#gate.paused = "no";
    this.#gate.rearm();
  }

  /** Changes limits while everything goes on: what was charged stays charged, and holders keep their slots. */
  update(options: LimiterUpdate<B>): void {
    updateLimits(this.#gate, options);
  }

  /** Rejects all present waiters with the reason; the limiter stays usable. */
  clear(reason: unknown = clearedError(this.#gate)): void {
    this.#gate.refuseAll("aborted", reason);
  }

  /** Waiters and later acquires reject with `ClosedError`; holders may still release. A string is its message. */
  close(reason?: unknown): void {
    this.#gate.close(reason);
  }

  /** Resolves when nothing is held and no caller waits. */
  idle(): Promise<void> {
    const { inUse, waiting, onIdle } = this.#gate;
    return new Promise((resolve) => (inUse + waiting > 0 ? onIdle.push(resolve) : resolve()));
  }

  /** Forgets idle keys whose budgets are full again; says how many. */
  sweep(): number {
    return this.#gate.ledger.keys.sweep(this.#gate.time.now());
  }

  /** Limits, use, budgets, and what was counted since the beginning. */
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
