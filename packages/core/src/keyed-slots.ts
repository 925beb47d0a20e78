/**
 * What `KeyedSemaphore` and `SlotPool` share: a gate for each key that is in use.
 *
 * KEYED1  At any time a key has at most one gate. While the key has a holder or waiter, the map contains its gate. While
 *     the key is idle, the map contains the time at which it became idle. One replaces the other in one step. A
 *     hand-over counts as held from the moment of the release, so no grant is in progress when a gate is replaced. Only
 *     times are removed from the map, so a lookup and a removal can never give one key two gates.
 * KEYED2  An idle key costs one entry of the map and no object. After a sweep it costs nothing.
 * KEYED3  There are at most 1,000 more idle keys than keys in use. Beyond that, the older half of the idle keys is removed.
 *     Removing an idle key changes only `size`. So memory depends on the number of keys in use at one time, not on the
 *     number of different keys.
 *
 * Cost: O(1), amortised. `sweep`, `resize` and `close` visit every key.
 *
 * Most of the cost of a new key is its entry in a `Map` that grows. With KEYED3 the map does not grow (W7;
 * docs/explanation/performance.md has the figures).
 */
import { origin, startTimer } from "./clock.ts";
import { Gate } from "./gate.ts";
import { type Counters, GateContext } from "./gate-context.ts";
import { check, kind, type Rule, type Rules, readOptions } from "./options.ts";
import {
  type AcquireOptions,
  PERIOD,
  PLAIN,
  POLICY_RULES,
  type Policy,
  type PolicyOptions,
  type TryAcquireOptions,
  TTL,
} from "./policy.ts";
import type { Work } from "./run-with-slot.ts";
import type { Slot } from "./slot.ts";

/** Options that `KeyedSemaphore` and `SlotPool` have in common. */
export interface KeyedOptions extends PolicyOptions {
  /**
   * A sweep removes the keys that have been idle for this time, in milliseconds. Idle keys are removed earlier if there
   * are over 1,000 more of them than keys in use. Removing a key changes only `size` and `stats().keys`.
   * @defaultValue 15 minutes
   */
  idleMs?: number | undefined;
  /**
   * How often idle keys are removed, in milliseconds. The timer starts again after every sweep, also after a call of
   * `sweep`. It does not keep a process alive.
   * @defaultValue 15 minutes
   */
  sweepEveryMs?: number | undefined;
}

/** The result of `stats()` of a `KeyedSemaphore` or `SlotPool`. */
export interface SlotPoolStats extends Counters {
  /** The name from the options. */
  readonly name: string | undefined;
  /** Slots of all keys together; `Infinity` if unlimited. */
  readonly max: number;
  /** Slots for each key; `Infinity` if unlimited. */
  readonly maxPerKey: number;
  /** Slots held, of all keys: the sum of their widths. */
  readonly inUse: number;
  /** Number of waiters, for their key or for the common limit. */
  readonly waiting: number;
  /** Number of keys, including idle keys that are not removed yet. */
  readonly keys: number;
}

/** The default of every option. */
export const KEYED = { ...PLAIN, idleMs: 900_000, sweepEveryMs: 900_000 };
export const KEYED_RULES: Rules<KeyedOptions> = { ...POLICY_RULES, idleMs: PERIOD, sweepEveryMs: TTL };

const KEY: Rule = /* @__PURE__ */ kind("given with `maxPerKey`", () => false);

/** The largest number of idle keys beyond the number of keys in use. */
const MOST_IDLE = 1_000;

/** The two limits; 0 means no limit. */
export interface Limits {
  /** Slots of all keys together. */
  max: number | undefined;
  /** Slots of each key. */
  maxPerKey: number | undefined;
}

export abstract class KeyedSlots<K, Limit extends keyof Limits> {
  /** The gate of the common limit, which is unlimited in a `KeyedSemaphore`. */
  readonly #all: Gate;
  #perKey: number;
  readonly #policy: Policy & typeof KEYED;
  readonly #limitRules: Rules<Limits>;
  /** The gate of a key in use; for an idle key, when it became idle. */
  readonly #gates = new Map<K, Gate | number>();
  /** Number of keys in use. */
  #busy = 0;
  /** An idle gate that the next key reuses. */
  #spare: Gate | undefined;
  #sweepTimer: unknown;

  /** @internal */
  constructor(
    policy: Policy & typeof KEYED,
    max: number,
    perKey: number | undefined,
    limitRules: Partial<Rules<Limits>>,
  ) {
    this.#policy = policy;
    this.#all = new Gate(max || Infinity, new GateContext(policy.clock));
    if (limitRules.max) this.#all.context.root = this.#all;
    this.#perKey = perKey || Infinity;
    this.#limitRules = limitRules as Rules<Limits>;
  }

  /** Number of keys, including idle keys that are not removed yet. */
  get size(): number {
    return this.#gates.size;
  }

  /** Slots held, of all keys: the sum of their widths. */
  get inUse(): number {
    let { inUse } = this.#all;
    if (!this.#all.context.root) this.#eachGate((gate) => (inUse += gate.inUse));
    return inUse;
  }

  /** Number of waiters, for their key or for the common limit. */
  get waiting(): number {
    return this.#all.context.waiting;
  }

  /** Whether `close` was called. */
  get closed(): boolean {
    return Boolean(this.#all.context.closed);
  }

  /** Waits for a slot of this key. Rejects like `Semaphore.acquire`. */
  acquire(key: K, options?: AcquireOptions): Promise<Slot> {
    try {
      return this.#gateOf(key).acquire(this.#policy, options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Returns a slot of this key, or `undefined` if none is free, if others wait for one, or after `close`. Never waits. */
  tryAcquire(key: K, options?: TryAcquireOptions): Slot | undefined {
    return this.#gateOf(key).tryAcquire(this.#policy, options);
  }

  /** Calls `work` while holding a slot of this key. If a slot is free, the work starts before `run` returns. */
  run<T>(key: K, work: Work<T>, options?: AcquireOptions): Promise<Awaited<T>> {
    try {
      return this.#gateOf(key).run(this.#policy, work, options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Removes the keys that have been idle for `idleMs` milliseconds (default: the option). Returns how many. */
  sweep(idleMs: number = this.#policy.idleMs): number {
    check("idleMs", PERIOD, idleMs);
    const { size } = this;
    this.#drop(this.#policy.clock.now() - origin - idleMs);
    this.#sweepLater();
    return size - this.size;
  }

  /** Limits, current use, and counts since the start. */
  stats(): SlotPoolStats {
    const { inUse, waiting, size: keys } = this;
    const { capacity: max, context } = this.#all;
    return { name: this.#policy.name, max, maxPerKey: this.#perKey, inUse, waiting, keys, ...context.counters };
  }

  /** Closes all keys, including keys that have not been used yet. See `Semaphore.close`. */
  close(reason?: unknown): void {
    this.#all.close(this.#policy, reason);
    this.#eachGate((gate) => gate.clear("rejected", this.#all.context.closed));
    this.sweep(0);
  }

  /** Changes the limits that are given. Growing serves waiters at once. Shrinking takes no slot from a holder. */
  resize(limits: { [Name in Limit]?: number | undefined }): void {
    const given: Partial<Limits> = readOptions<Partial<Limits>>(limits, this.#limitRules);
    const { max = this.#all.capacity, maxPerKey = this.#perKey } = given;
    this.#perKey = maxPerKey || Infinity;
    this.#all.resize(max || Infinity, this.#policy);
    this.#eachGate((gate) => gate.resize(this.#perKey));
  }

  /** Called by a gate when no slot of it is held and no caller waits. */
  readonly #becameIdle = (gate: Gate): void => {
    // A call from `onEvent` may already have made this gate idle. A gate that serves no key has the capacity 0.
    if (gate.capacity === 0) return;
    const key = gate.key as K;
    this.#busy--;
    gate.capacity = 0;
    gate.key = undefined;
    this.#spare = gate;
    if (this.closed) this.#gates.delete(key);
    // A small integer: the engine keeps it in the map without an object (W7).
    else this.#gates.set(key, Math.floor(this.#policy.clock.now() - origin));
    const idle = this.size - this.#busy;
    if (idle > this.#busy + MOST_IDLE) this.#drop(Infinity, idle / 2);
  };

  /**
   * Returns the gate for the first stage. In a pool without a limit per key, that is the gate of the common limit. In a pool
   * with one, throws if there is no key: that would bypass the limit. Opens a gate if the key has none. Nothing may be held
   * of it, so the caller must call one of its methods next: they report the gate if it is still idle.
   */
  #gateOf(key: K): Gate {
    const { root } = this.#all.context;
    if (root && this.#perKey === Infinity) return root;
    if (root && key === undefined) check("key", KEY, key);
    const gate = this.#gates.get(key);
    return typeof gate === "object" ? gate : this.#open(key);
  }

  #eachGate(visit: (gate: Gate) => void): void {
    this.#gates.forEach((gate) => typeof gate === "object" && visit(gate));
  }

  #open(key: K): Gate {
    const gate = this.#spare ?? new Gate(this.#perKey, this.#all.context, this.#becameIdle);
    this.#spare = undefined;
    gate.capacity = this.#perKey;
    gate.key = key;
    this.#busy++;
    this.#gates.set(key, gate);
    if (this.#sweepTimer === undefined) this.#sweepLater();
    return gate;
  }

  /** Removes keys that became idle at `sinceAt` or earlier: at most `most` of them, the oldest keys first. */
  #drop(sinceAt: number, most = Infinity): void {
    this.#gates.forEach((gate, key) => {
      if (typeof gate === "number" && gate <= sinceAt && most-- > 0) this.#gates.delete(key);
    });
  }

  /** Restarts the timer of the next sweep, or stops it if there is nothing to sweep. */
  #sweepLater(): void {
    const { clock, sweepEveryMs } = this.#policy;
    clock.clearTimer(this.#sweepTimer);
    const isNeeded = this.size > 0 && !this.closed;
    this.#sweepTimer = isNeeded ? startTimer(clock, () => this.sweep(), sweepEveryMs, false) : undefined;
  }
}
