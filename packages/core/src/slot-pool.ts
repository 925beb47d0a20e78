/**
 * One kind of slot with a global limit and, if wanted, a limit per key.
 *
 * I1  Per key first, then global: whoever waits for its key holds no global slot, so a key's backlog, however long,
 *     takes nothing from the others.
 * I2  If the second stage fails in any way, the first is undone before the caller learns of it.
 * I3  The slot that the caller gets is the global one with the key's slot tied to it: both go back together, the
 *     key's first, whether released or expired. Where one of the limits is off, its stage is left out.
 */
import { keepAlive } from "./clock.ts";
import type { SemaphoreEvent } from "./events.ts";
import { Gate } from "./gate.ts";
import { type Counters, GateContext } from "./gate-context.ts";
import { GateMap } from "./gate-map.ts";
import { type AcquireOptions, check, type Policy, type PolicyOptions, resolvePolicy } from "./policy.ts";
import { runWithSlot, type Work } from "./run-with-slot.ts";
import type { HeldSlot, Slot } from "./slot.ts";

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

const QUARTER_HOUR_MS = 900_000;

export class SlotPool<K = string> {
  readonly #policy: Policy;
  /** Of a key's slot that is tied to a global one: it lives and dies with that. */
  readonly #tiedPolicy: Policy;
  readonly #global: Gate;
  readonly #keys: GateMap<K>;
  readonly #sweepEveryMs: number;
  #maxPerKey: number;
  #sweepTimer: unknown = undefined;

  constructor(options: SlotPoolOptions) {
    const { max, maxPerKey = 0, idleMs = QUARTER_HOUR_MS, sweepEveryMs = QUARTER_HOUR_MS } = options;
    check("max", max);
    const policy = resolvePolicy(options, "max", "maxPerKey", "idleMs", "sweepEveryMs");
    const { clock, onEvent } = policy;
    this.#policy = policy;
    this.#tiedPolicy = { ...policy, ttlMs: Infinity, onEvent: onEvent && endsOfWaits(onEvent) };
    this.#global = new Gate(max || Infinity, new GateContext(clock));
    this.#keys = new GateMap(idleMs, clock);
    this.#maxPerKey = maxPerKey || Infinity;
    this.#sweepEveryMs = sweepEveryMs;
  }

  /** How many keys are kept, idle ones included. */
  get size(): number {
    return this.#keys.gates.size;
  }

  get inUse(): number {
    let { inUse } = this.#global;
    if (!this.hasGlobal) for (const gate of this.#keys.gates.values()) inUse += gate.inUse;
    return inUse;
  }

  /** For their key or for the global limit. */
  get waiting(): number {
    return this.#keys.context.waiting + this.#global.waiting;
  }

  get closed(): boolean {
    return this.#global.closed !== undefined;
  }

  /** A slot for that key; without a key only the global limit counts. `timeoutMs` and `signal` cover both stages. */
  acquire(key?: K, options?: AcquireOptions): Promise<Slot> {
    return Promise.resolve(this.#enter(key, options));
  }

  /** A slot now, or `undefined`: also while others wait for the same, and when closed. */
  tryAcquire(key?: K, options?: { width?: number | undefined }): Slot | undefined {
    const width = options?.width;
    const gate = this.#gateOf(key);
    if (!gate.fits(width)) return undefined;
    if (!this.#isTied(gate)) return gate.take(this.#policy, width);
    return this.#global.fits(width) ? this.#takeBoth(gate, width) : undefined;
  }

  /** Does the work while holding a slot. If one is free, the work starts before this returns. */
  run<T>(key: K | undefined, work: Work<T>, options?: AcquireOptions): Promise<Awaited<T>> {
    return runWithSlot(this.#enter(key, options), this.#policy, work, options);
  }

  /** Growing serves waiters at once, shrinking evicts nobody. Who holds while keys have no limit counts for no key. */
  resize({ max = this.#global.capacity, maxPerKey = this.#maxPerKey }: SlotPoolLimits): void {
    check("max", max);
    check("maxPerKey", maxPerKey);
    this.#maxPerKey = maxPerKey || Infinity;
    for (const gate of this.#keys.gates.values()) gate.resize(this.#tiedPolicy, this.#maxPerKey);
    this.#global.resize(this.#policy, max || Infinity);
  }

  /** Drops the keys that have been idle for `idleMs`; says how many. */
  sweep(idleMs?: number): number {
    const dropped = this.#keys.sweep(idleMs);
    if (this.size === 0) this.#stopSweeping();
    return dropped;
  }

  stats(): SlotPoolStats {
    const [global, keyed] = [this.#global.context.counters, this.#keys.context.counters];
    return {
      name: this.#policy.name,
      max: this.#global.capacity,
      maxPerKey: this.#maxPerKey,
      inUse: this.inUse,
      waiting: this.waiting,
      keys: this.size,
      // A key's slot that is tied to a global one is the same slot: but waits may end in either stage.
      ...(this.hasGlobal ? global : keyed),
      timedOut: global.timedOut + keyed.timedOut,
      aborted: global.aborted + keyed.aborted,
      rejected: global.rejected + keyed.rejected,
    };
  }

  /** As `Semaphore.close`, for all keys, those to come included. */
  close(reason?: unknown): void {
    this.#global.close(this.#policy, reason);
    for (const gate of this.#keys.gates.values()) gate.close(this.#tiedPolicy, reason);
    this.#stopSweeping();
  }

  /** Whether there is a second stage; if not, every value is a key. */
  protected get hasGlobal(): boolean {
    return true;
  }

  #enter(key: K | undefined, options: AcquireOptions | undefined): HeldSlot | Promise<HeldSlot> {
    const gate = this.#gateOf(key);
    if (!this.#isTied(gate)) return gate.enter(this.#policy, options);
    if (options === undefined && gate.fits() && this.#global.fits()) return this.#takeBoth(gate);
    const misuse = this.#global.tooWide(options?.width ?? 1);
    if (misuse !== undefined) return Promise.reject(new RangeError(misuse));
    const arrivedAt = this.#global.context.clock.now();
    return gate.enter(this.#tiedPolicy, options, (first) => this.#enterGlobal(first, options, arrivedAt));
  }

  /** The second stage, the moment the first is passed, with what is left of the time. */
  #enterGlobal(first: HeldSlot, options: AcquireOptions | undefined, arrivedAt: number): HeldSlot | Promise<HeldSlot> {
    const timeoutMs = options?.timeoutMs ?? this.#policy.acquireTimeoutMs;
    const leftMs = Math.max(0, arrivedAt + timeoutMs - this.#global.context.clock.now());
    const left = { ...options, timeoutMs: leftMs };
    const entered = this.#global.enter(this.#policy, left, (slot) => tie(first, slot), arrivedAt);
    if (!(entered instanceof Promise)) return entered;
    return entered.catch((error: unknown) => {
      first.release();
      throw error;
    });
  }

  #takeBoth(gate: Gate, width?: number): HeldSlot {
    return tie(gate.take(this.#tiedPolicy, width), this.#global.take(this.#policy, width));
  }

  #isTied(gate: Gate): boolean {
    return this.hasGlobal && gate !== this.#global;
  }

  /** The first stage: the global gate, if there is no key or no limit for it. Once closed, a gate that is closed and that nobody keeps. */
  #gateOf(key: K | undefined): Gate {
    if (this.hasGlobal && (key === undefined || this.#maxPerKey === Infinity)) return this.#global;
    const known = this.#keys.gates.get(key as K);
    if (known !== undefined) return known;
    const gate = new Gate(this.#maxPerKey, this.#keys.context, key);
    gate.closed = this.#global.closed;
    if (this.#sweepTimer === undefined && !this.closed) this.#startSweeping();
    return this.#keys.add(gate);
  }

  #startSweeping(): void {
    const sweep = () => {
      this.#startSweeping();
      this.sweep();
    };
    this.#sweepTimer = this.#keys.context.clock.setTimer(sweep, this.#sweepEveryMs);
    keepAlive(this.#sweepTimer, false);
  }

  #stopSweeping(): void {
    this.#keys.context.clock.clearTimer(this.#sweepTimer);
    this.#sweepTimer = undefined;
  }
}

/** Slots for every key. Keys are compared as in a `Map`, and any value is a key, `undefined` too. */
export class KeyedSemaphore<K = string> extends SlotPool<K> {
  constructor(slotsPerKey: number, options: KeyedOptions = {}) {
    check("slotsPerKey", slotsPerKey);
    resolvePolicy(options, "idleMs", "sweepEveryMs");
    super({ ...options, max: 0, maxPerKey: slotsPerKey });
  }

  protected override get hasGlobal(): boolean {
    return false;
  }
}

/** Makes `first` go back with `slot`; at once if foreign code let it expire already. */
function tie(first: HeldSlot, slot: HeldSlot): HeldSlot {
  if (slot.released) first.release();
  else slot.ticket.first = first;
  return slot;
}

/** Of the first stage only the waits that end there are news: the rest the second stage tells. */
function endsOfWaits(onEvent: (event: SemaphoreEvent) => void): (event: SemaphoreEvent) => void {
  return (event) => {
    if (event.type === "timed-out" || event.type === "aborted") onEvent(event);
  };
}
