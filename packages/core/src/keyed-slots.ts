/**
 * What the keyed kinds share: a gate for each key, for as long as it is needed.
 *
 * KEYED1  At any time a key has at most one gate. The map has the key's gate while something of the key is held or waits, and
 *     the time since when it is idle otherwise; one takes the other's place in one step. (A hand-over counts as held from
 *     the moment of the release, so no grant is in flight when a gate goes.) Only a time is dropped: so looking up and
 *     dropping can never split a key in two.
 * KEYED2  An idle key costs its place in the map, and no object. After a sweep it costs nothing.
 * KEYED3  There are at most 1,000 idle keys more than keys in use; beyond that the older half of them is dropped. Dropping an
 *     idle key changes nothing but `size`. So a flood of keys costs no more memory than those in use at one time.
 *
 * Cost: O(1), amortised, but `sweep`, `resize` and `close` look at every key.
 *
 * Most of what a new key costs is its place in a `Map` that grows: with KEYED3 it does not (W7;
 * docs/explanation/performance.md has the figures).
 */
import { startTimer } from "./clock.ts";
import { Gate } from "./gate.ts";
import { type Counters, GateContext } from "./gate-context.ts";
import { check, type Rules, resolveOptions } from "./options.ts";
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

/** Options of `KeyedSemaphore` and `SlotPool` alike. */
export interface KeyedOptions extends PolicyOptions {
  /**
   * A key with nothing held for this long is dropped by the next sweep. More than 1,000 idle keys, and one for each key in
   * use, are not kept that long. Dropping a key changes nothing but `size` and `stats().keys`.
   * @defaultValue 15 minutes
   */
  idleMs?: number | undefined;
  /** How often idle keys are removed, in milliseconds. The timer does not keep a process alive. @defaultValue 15 minutes */
  sweepEveryMs?: number | undefined;
}

/** The result of `stats()` of a `KeyedSemaphore` or `SlotPool`. */
export interface SlotPoolStats extends Counters {
  readonly name: string | undefined;
  /** Slots of all keys together; `Infinity` if unlimited. */
  readonly max: number;
  /** Slots for each key; `Infinity` if unlimited. */
  readonly maxPerKey: number;
  readonly inUse: number;
  /** Waiters, for their key or for the common limit. */
  readonly waiting: number;
  /** How many keys are kept, idle ones included. */
  readonly keys: number;
}

export const KEYED = { ...PLAIN, idleMs: 900_000, sweepEveryMs: 900_000 };
export const KEYED_RULES: Rules<KeyedOptions> = { ...POLICY_RULES, idleMs: PERIOD, sweepEveryMs: TTL };

/** Idle keys that are kept, beside one for each key in use. */
const MOST_IDLE = 1_000;

/** Slots in all and for each key. */
export interface Limits {
  max: number | undefined;
  maxPerKey: number | undefined;
}

export abstract class KeyedSlots<K, Limit extends keyof Limits> {
  /** The limit of all. */
  readonly #all: Gate;
  #perKey: number;
  readonly #policy: Policy & typeof KEYED;
  readonly #limitRules: Rules<Limits>;
  /** A key's gate, or since when it is idle. */
  readonly #gates = new Map<K, Gate | number>();
  /** How many keys are in use. */
  #busy = 0;
  /** An idle gate, for the next key. */
  #spare: Gate | undefined;
  #sweepTimer: unknown;

  /** @internal */
  constructor(policy: Policy & typeof KEYED, max: number, perKey: number, limitRules: Partial<Rules<Limits>>) {
    this.#policy = policy;
    this.#all = new Gate(max || Infinity, new GateContext(policy.clock));
    if (limitRules.max) this.#all.context.root = this.#all;
    this.#perKey = perKey || Infinity;
    this.#limitRules = limitRules as Rules<Limits>;
  }

  /** How many keys are kept, idle ones included. */
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

  /** Waits for a slot of that key. Rejects as `Semaphore.acquire` does. */
  acquire(key: K, options?: AcquireOptions): Promise<Slot> {
    return this.#gateOf(key).acquire(this.#policy, options);
  }

  /** Returns a slot of that key, or `undefined` if none is free, if others wait for it, or after `close`. */
  tryAcquire(key: K, options?: TryAcquireOptions): Slot | undefined {
    return this.#gateOf(key).tryAcquire(this.#policy, options);
  }

  /** Does the work while holding a slot of that key. If one is free, the work starts before this returns. */
  run<T>(key: K, work: Work<T>, options?: AcquireOptions): Promise<Awaited<T>> {
    return this.#gateOf(key).run(this.#policy, work, options);
  }

  /** Drops the keys that have been idle for `idleMs` (default: that of the options); returns how many. */
  sweep(idleMs: number = this.#policy.idleMs): number {
    check("idleMs", PERIOD, idleMs);
    const { size } = this;
    this.#drop(this.#policy.clock.now() - idleMs);
    if (this.size === 0) this.#sweepLater();
    return size - this.size;
  }

  /** Limits, present use, and counts since the start. */
  stats(): SlotPoolStats {
    const { inUse, waiting, size: keys } = this;
    const { capacity: max, context } = this.#all;
    return { name: this.#policy.name, max, maxPerKey: this.#perKey, inUse, waiting, keys, ...context.counters };
  }

  /** Closes all keys, also those that are not in use yet: see `Semaphore.close`. */
  close(reason?: unknown): void {
    this.#all.close(this.#policy, reason);
    this.#eachGate((gate) => gate.clear("rejected", this.#all.context.closed));
    this.#drop(Infinity);
    this.#sweepLater();
  }

  /** Changes limits; those not named stay. Growing serves waiters at once; shrinking takes no slot from a holder. */
  resize(limits: { [Name in Limit]?: number | undefined }): void {
    const now = { max: this.#all.capacity, maxPerKey: this.#perKey };
    const { max, maxPerKey } = resolveOptions(now, this.#limitRules, limits);
    this.#perKey = maxPerKey || Infinity;
    this.#all.resize(max || Infinity, this.#policy);
    this.#eachGate((gate) => gate.resize(this.#perKey));
  }

  /** For `Gate`: nothing of it is held, and none waits. */
  readonly #becameIdle = (gate: Gate): void => {
    // Inside `onEvent` it may have been put away already.
    const key = gate.key as K;
    if (this.#gates.get(key) !== gate) return;
    this.#busy--;
    gate.key = undefined;
    this.#spare = gate;
    if (this.closed) this.#gates.delete(key);
    else this.#gates.set(key, this.#policy.clock.now());
    const idle = this.size - this.#busy;
    if (idle > this.#busy + MOST_IDLE) this.#drop(Infinity, idle / 2);
  };

  /**
   * The first stage: in a pool the gate of all, if there is no key or no limit for it. Opened if need be; the caller must
   * enter it, or `serve` it: nothing may be held of it.
   */
  #gateOf(key: K): Gate {
    const { root } = this.#all.context;
    if (root && (key === undefined || this.#perKey === Infinity)) return root;
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

  /** Drops the keys that were idle then, or before: no more than `most`, those first that were made first. */
  #drop(sinceAt: number, most = Infinity): void {
    this.#gates.forEach((gate, key) => {
      if (typeof gate === "number" && gate <= sinceAt && most-- > 0) this.#gates.delete(key);
    });
  }

  /** Sets the timer of the next sweep anew, or drops it if there is nothing to sweep. */
  #sweepLater(): void {
    const { clock, sweepEveryMs } = this.#policy;
    const sweep = () => {
      this.sweep();
      this.#sweepLater();
    };
    clock.clearTimer(this.#sweepTimer);
    const isNeeded = this.size > 0 && !this.closed;
    this.#sweepTimer = isNeeded ? startTimer(clock, sweep, sweepEveryMs, false) : undefined;
  }
}
