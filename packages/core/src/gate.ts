/**
 * A counted gate with a queue: the one place where slots are taken, handed over and given back. `Semaphore`,
 * `KeyedSemaphore` and `SlotPool` are ways of finding the right gate.
 *
 * I1  `inUse`, the sum of the widths held, rises above `capacity` in no way but by shrinking the capacity.
 * I2  FIFO: a slot is granted to the head of the queue or, if nobody waits, to whoever asks. No one overtakes, not
 *     even a narrow waiter a wide one; so nobody starves.
 * I3  Hand-off: when `free` returns, the slot is already the next waiter's. Therefore a free slot and a waiter that it
 *     would serve never exist side by side.
 * I4  A waiter that is aborted, times out or is refused consumes no slot, and leaves no timer, listener or queue entry.
 * I5  acquired = released + expired + the number held.
 *
 * Every operation is O(1), but that one hand-off may serve several waiters, and `close` and a shrinking `resize` look
 * at all of them. State is consistent whenever foreign code may run (`onEvent`, listeners of a slot's signal), so that
 * it may call back in.
 *
 * Source: the shape of Go's x/sync/semaphore; unlike there, asking for more than the capacity is an error, not an
 * endless wait.
 */
import { AcquireTimeoutError, ClosedError, QueueFullError } from "./errors.ts";
import { emit } from "./events.ts";
import type { GateContext } from "./gate-context.ts";
import { Link } from "./linked-list.ts";
import { type AcquireOptions, PLAIN, type Policy, problem } from "./policy.ts";
import { HeldSlot, type SlotDetails } from "./slot.ts";
import { SlotNumbers } from "./slot-numbers.ts";
import { type Resolve, Waiter } from "./waiter.ts";
import { WaiterQueue } from "./waiter-queue.ts";

export class Gate extends Link {
  readonly context: GateContext;
  /** What its owner finds it by, if it has one. */
  readonly key: unknown;
  capacity: number;
  inUse = 0;
  waiting = 0;
  /** Slots held that have a ttl. */
  #leased = 0;
  /** What everybody gets once it is closed. */
  closed: ClosedError | undefined = undefined;
  /** Made when somebody first waits. */
  #queue: WaiterQueue<Resolve | Waiter> | undefined = undefined;
  /** Made when somebody first asks for an id or a number. */
  #byId: Map<string, HeldSlot> | undefined = undefined;
  #numbers: SlotNumbers | undefined = undefined;
  #onIdle: (() => void)[] | undefined = undefined;
  /** For its owner's list of idle gates. */
  idleSinceAt = 0;

  constructor(capacity: number, context: GateContext, key?: unknown) {
    super();
    this.capacity = capacity;
    this.context = context;
    this.key = key;
  }

  /** A slot if one can be had now, else a promise of one, which may already be rejected. Never throws. */
  enter(policy: Policy, options?: AcquireOptions, arrivedAt?: number): HeldSlot | Promise<HeldSlot> {
    if (options === undefined && this.#isFree(1)) return this.take(policy, 1);
    const { signal, timeoutMs = policy.acquireTimeoutMs, width = 1 } = options ?? {};
    const misuse = this.#misuse(width) ?? problem("timeoutMs", timeoutMs);
    if (misuse !== undefined) return Promise.reject(new RangeError(misuse));
    if (signal?.aborted) {
      this.#count("aborted", policy, 0);
      return Promise.reject(signal.reason);
    }
    if (this.#isFree(width)) return this.take(policy, width);
    const refusal = this.#refusal(policy, timeoutMs, arrivedAt);
    if (refusal !== undefined) return Promise.reject(refusal);
    const isPlain = policy.isPlain && width === 1 && signal === undefined && timeoutMs === Infinity;
    return this.#queueUp(isPlain ? undefined : new Waiter(this, policy, width, signal, timeoutMs, arrivedAt));
  }

  /** Whether a slot of that width can be had now. */
  fits(width = 1): boolean {
    const misuse = this.#misuse(width);
    if (misuse !== undefined) throw new RangeError(misuse);
    return this.#isFree(width);
  }

  /** Only for those whom it fits, and the head of the queue. */
  take(policy: Policy, width = 1, waitedMs = 0): HeldSlot {
    if (this.inUse === 0) this.context.home?.becameBusy(this);
    this.inUse += width;
    this.context.counters.acquired++;
    const slot = new HeldSlot(this, width);
    if (!policy.isPlain) {
      this.lease(slot.details(policy), policy.ttlMs);
      if (policy.onEvent !== undefined) emit(policy, this, "acquired", waitedMs, slot.number);
    }
    return slot;
  }

  /** A slot was given back by its holder, or taken back. */
  free(width: number, details: SlotDetails | undefined, how: "released" | "expired"): void {
    this.inUse -= width;
    this.context.counters[how]++;
    if (details !== undefined) this.#forget(details, how);
    if (this.waiting > 0) this.#handOff();
    if (this.inUse === 0) this.#becameIdle();
  }

  /** A wait is over without a slot. */
  end(waiter: Waiter, how: "aborted" | "timedOut", error: unknown): void {
    this.#drop(waiter, how, error);
    this.#handOff();
  }

  /** Starts or restarts the ttl of a held slot; `Infinity` ends it. */
  lease(details: SlotDetails, ttlMs: number): void {
    const { leases, clock } = this.context;
    const wasLeased = details.list !== undefined;
    if (ttlMs === Infinity) leases.drop(details);
    else leases.set(details, ttlMs);
    const isLeased = details.list !== undefined;
    if (isLeased && !wasLeased) details.takenAt = clock.now();
    this.#await(0, Number(isLeased) - Number(wasLeased));
  }

  nextNumber(): number {
    this.#numbers ??= new SlotNumbers();
    return this.#numbers.take(this.capacity);
  }

  /** A new id, 128 random bits. `find` knows it while the slot is held. */
  identify(slot: HeldSlot): string {
    const id = crypto.getRandomValues(new Uint32Array(4)).join("-");
    this.#byId ??= new Map();
    if (!slot.released) this.#byId.set(id, slot);
    return id;
  }

  find(id: string): HeldSlot | undefined {
    return this.#byId?.get(id);
  }

  resize(policy: Policy, capacity: number): void {
    this.capacity = capacity;
    for (const waiter of this.#queue?.all() ?? []) {
      const misuse = this.#misuse(widthOf(waiter));
      if (misuse !== undefined) this.#drop(waiter, "rejected", new RangeError(misuse));
    }
    emit(policy, this, "resized");
    this.#handOff();
  }

  close(policy: Policy, reason: unknown): void {
    if (this.closed !== undefined) return;
    this.closed = new ClosedError(policy.name, reason);
    for (const waiter of this.#queue?.all() ?? []) this.#drop(waiter, "rejected", this.closed);
    emit(policy, this, "closed");
    this.context.home?.becameIdle(this);
  }

  /** Calls back when nothing is held, at once if nothing is. */
  whenIdle(callback: () => void): void {
    (this.#onIdle ??= []).push(callback);
    if (this.inUse === 0) this.#becameIdle();
  }

  #isFree(width: number): boolean {
    return this.waiting === 0 && this.inUse + width <= this.capacity && this.closed === undefined;
  }

  #queueUp(waiter: Waiter | undefined): Promise<HeldSlot> {
    this.#queue ??= new WaiterQueue();
    const promise = new Promise<HeldSlot>(capture);
    if (waiter !== undefined) {
      waiter.resolve = resolveNew;
      waiter.reject = rejectNew;
    }
    this.#queue.push(waiter ?? resolveNew);
    this.#await(1, 0);
    return promise;
  }

  /** Serves the head of the queue for as long as it fits. A loop, never recursion: 100,000 may leave in one turn. */
  #handOff(): void {
    while (this.waiting > 0) {
      const waiter = this.#queue?.first() as Resolve | Waiter;
      const signal = typeof waiter === "function" ? undefined : waiter.signal;
      // Its signal may have aborted without our listener having run yet.
      if (signal?.aborted) {
        this.#drop(waiter, "aborted", signal.reason);
      } else if (this.inUse + widthOf(waiter) > this.capacity) {
        return;
      } else {
        this.#remove(waiter);
        if (typeof waiter === "function") waiter(this.take(PLAIN));
        else waiter.resolve(this.take(waiter.policy, waiter.width, waiter.waitedMs));
      }
    }
  }

  #drop(waiter: Resolve | Waiter, how: "aborted" | "timedOut" | "rejected", error: unknown): void {
    this.#remove(waiter);
    // A plain waiter can only be refused, which is not worth keeping a second function for.
    if (typeof waiter === "function") waiter(Promise.reject(error));
    else waiter.reject(error);
    this.#count(
      how,
      typeof waiter === "function" ? PLAIN : waiter.policy,
      typeof waiter === "function" ? 0 : waiter.waitedMs,
    );
  }

  /** Out of the queue, its timer and its signal. */
  #remove(waiter: Resolve | Waiter): void {
    if (typeof waiter === "function") this.#queue?.remove();
    else {
      this.#queue?.remove(waiter.position);
      waiter.detach();
    }
    this.#await(-1, 0);
  }

  #forget(details: SlotDetails, how: "released" | "expired"): void {
    // In a pool the key's slot goes back before the global one.
    details.first?.release();
    this.lease(details, Infinity);
    if (details.id !== undefined) this.#byId?.delete(details.id);
    if (details.number > 0) this.#numbers?.giveBack(details.number);
    emit(details.policy, this, how, undefined, details.number);
  }

  /** A ttl that somebody waits for keeps the process alive, one that nobody waits for does not. */
  #await(waiters: number, leased: number): void {
    const wasAwaited = this.waiting > 0 && this.#leased > 0;
    this.waiting += waiters;
    this.context.waiting += waiters;
    this.#leased += leased;
    const isAwaited = this.waiting > 0 && this.#leased > 0;
    if (isAwaited !== wasAwaited) this.context.leases.pin(isAwaited ? 1 : -1);
  }

  /** Why whoever finds no slot free may not even wait. */
  #refusal(policy: Policy, timeoutMs: number, arrivedAt: number | undefined): Error | undefined {
    if (this.closed === undefined) {
      if (timeoutMs === 0) {
        const waitedMs = arrivedAt === undefined ? 0 : this.context.clock.now() - arrivedAt;
        this.#count("timedOut", policy, waitedMs);
        return new AcquireTimeoutError(policy.name, waitedMs, this.waiting);
      }
      if (this.waiting < policy.maxWaiters) return undefined;
    }
    this.#count("rejected", policy, 0);
    return this.closed ?? new QueueFullError(policy.name, this.waiting);
  }

  /** An acquire that got no slot. */
  #count(how: "aborted" | "timedOut" | "rejected", policy: Policy, waitedMs: number): void {
    this.context.counters[how]++;
    if (how !== "rejected") emit(policy, this, how === "aborted" ? how : "timed-out", waitedMs);
  }

  #misuse(width: number): string | undefined {
    return problem("width", width, this.capacity);
  }

  #becameIdle(): void {
    for (const callback of this.#onIdle?.splice(0) ?? []) callback();
    this.context.home?.becameIdle(this);
  }
}

let resolveNew: Resolve;
let rejectNew: Waiter["reject"];

/** One executor for all promises: a closure for each would be a fifth of what a waiter costs. */
function capture(resolve: Resolve, reject: Waiter["reject"]): void {
  resolveNew = resolve;
  rejectNew = reject;
}

function widthOf(waiter: Resolve | Waiter): number {
  return typeof waiter === "function" ? 1 : waiter.width;
}
