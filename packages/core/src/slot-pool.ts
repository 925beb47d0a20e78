/**
 * One kind of slot with a global limit and, if wanted, a limit per key.
 *
 * I1  Per key first, then global: whoever waits for its key holds no global slot, so a key's backlog, however long,
 *     takes nothing from the others.
 * I2  If the second stage fails in any way, the first is undone before the caller learns of it.
 * I3  A slot counts at its key's gate and at the global one, the parent of that: both go back together, the key's
 *     first, whether released or expired, and before either is handed on. Without a limit per key that stage is left out.
 */
import { startTimer } from "./clock.ts";
import { Gate } from "./gate.ts";
import { type Counters, GateContext } from "./gate-context.ts";
import { GateMap } from "./gate-map.ts";
import {
  type AcquireOptions,
  check,
  PLAIN,
  type Policy,
  type PolicyOptions,
  resolveOptions,
  resolvePolicy,
} from "./policy.ts";
import { runWithSlot, type Work } from "./run-with-slot.ts";
import type { Slot } from "./slot.ts";

export interface KeyedOptions extends PolicyOptions {
  /** A key with nothing held for this long is dropped by the next sweep. Default 15 minutes. */
  idleMs?: number | undefined;
  /** How often that is looked for. Default 15 minutes. The timer never keeps a process alive. */
  sweepEveryMs?: number | undefined;
}

export interface SlotPoolOptions extends KeyedOptions {
  /** Slots in all; 0 for no limit. */
  max: number;
  /** Slots for each key; 0, the default, for no limit. */
  maxPerKey?: number | undefined;
}

export interface SlotPoolStats extends Counters {
  readonly name: string | undefined;
  /** `Infinity` if unlimited. */
  readonly max: number;
  readonly maxPerKey: number;
  readonly inUse: number;
  /** Waiting for their key or for the global limit. */
  readonly waiting: number;
  /** How many keys are kept, idle ones included. */
  readonly keys: number;
}

/** What a pool is resized to; what is left out stays. */
export type SlotPoolLimits = Pick<SlotPoolOptions, "maxPerKey"> & Partial<Pick<SlotPoolOptions, "max">>;

const KEYED = { ...PLAIN, idleMs: 900_000, sweepEveryMs: 900_000 };

export class SlotPool<K = string> extends GateMap<K> {
  declare protected readonly policy: Policy & typeof KEYED;
  readonly #global: Gate;
  #maxPerKey: number;
  #sweepTimer: unknown;

  constructor(options: SlotPoolOptions) {
    check("max", options.max);
    const policy = resolvePolicy({ ...KEYED, max: 0, maxPerKey: 0 }, options);
    super(policy);
    this.#global = new Gate(policy.max || Infinity, new GateContext(policy.clock));
    this.#maxPerKey = policy.maxPerKey || Infinity;
    this.parent = this.#global;
  }

  get inUse(): number {
    let { inUse } = this.#global;
    if (!this.parent) for (const gate of this.gates.values()) inUse += gate.inUse;
    return inUse;
  }

  /** For their key or for the global limit. */
  get waiting(): number {
    return this.#global.context.waiting;
  }

  get closed(): boolean {
    return Boolean(this.#global.context.closed);
  }

  /** A slot for that key; without a key only the global limit counts. `timeoutMs` and `signal` cover both stages. */
  acquire(key?: K, options?: AcquireOptions): Promise<Slot> {
    return Promise.resolve(this.#gateOf(key).enter(this.policy, options));
  }

  /** A slot now, or `undefined`: also while others wait for the same, and when closed. */
  tryAcquire(key?: K, options?: { width?: number | undefined }): Slot | undefined {
    return this.#gateOf(key).tryEnter(this.policy, options?.width);
  }

  /** Does the work while holding a slot. If one is free, the work starts before this returns. */
  run<T>(key: K | undefined, work: Work<T>, options?: AcquireOptions): Promise<Awaited<T>> {
    return runWithSlot(this.#gateOf(key).enter(this.policy, options), this.policy, work, options);
  }

  /** Growing serves waiters at once, shrinking evicts nobody. Who holds while keys have no limit counts for no key. */
  resize(limits: SlotPoolLimits): void {
    const { max, maxPerKey } = resolveOptions({ max: this.#global.capacity, maxPerKey: this.#maxPerKey }, limits);
    this.#maxPerKey = maxPerKey || Infinity;
    this.#global.resize(max || Infinity, this.policy);
    for (const gate of this.gates.values()) gate.resize(this.#maxPerKey);
  }

  /** Drops the keys that have been idle for `idleMs`; says how many. */
  override sweep(idleMs?: number): number {
    const dropped = super.sweep(idleMs);
    this.#sweepLater();
    return dropped;
  }

  stats(): SlotPoolStats {
    const { inUse, waiting, size: keys } = this;
    const { capacity: max, context } = this.#global;
    return { name: this.policy.name, max, maxPerKey: this.#maxPerKey, inUse, waiting, keys, ...context.counters };
  }

  /** As `Semaphore.close`, for all keys, those to come included. */
  close(reason?: unknown): void {
    this.#global.close(this.policy, reason);
    for (const gate of this.gates.values()) gate.serve();
    this.#sweepLater();
  }

  /** The first stage: the global gate, if there is no key or no limit for it. */
  #gateOf(key: K | undefined): Gate {
    if (this.parent && (key === undefined || this.#maxPerKey === Infinity)) return this.parent;
    let gate = this.gates.get(key as K);
    if (!gate) {
      gate = this.add(new Gate(this.#maxPerKey, this.#global.context, this, key));
      this.#sweepLater();
    }
    return gate;
  }

  #sweepLater(): void {
    const { clock, sweepEveryMs } = this.policy;
    const again = () => {
      this.#sweepTimer = undefined;
      this.sweep();
    };
    if (this.size > 0 && !this.closed) this.#sweepTimer ??= startTimer(clock, again, sweepEveryMs, false);
    else {
      clock.clearTimer(this.#sweepTimer);
      this.#sweepTimer = undefined;
    }
  }
}

/** A pool whose slots are all of some key. */
type Keyed = new <K>(
  options: SlotPoolOptions,
) => Omit<SlotPool<K>, "acquire" | "tryAcquire" | "run"> & {
  acquire(key: K, options?: AcquireOptions): Promise<Slot>;
  tryAcquire(key: K, options?: { width?: number | undefined }): Slot | undefined;
  run<T>(key: K, work: Work<T>, options?: AcquireOptions): Promise<Awaited<T>>;
};

/** Slots for every key. Keys are compared as in a `Map`, and any value is a key, `undefined` too. */
export class KeyedSemaphore<K = string> extends (SlotPool as unknown as Keyed)<K> {
  constructor(slotsPerKey: number, options: KeyedOptions = {}) {
    check("slotsPerKey", slotsPerKey, 1);
    super({ ...resolveOptions(KEYED, options), max: 0, maxPerKey: slotsPerKey });
    this.parent = undefined;
  }
}
