/**
 * A counted gate with a queue: the one place where slots are taken, handed over and given back. `Semaphore`,
 * `KeyedSemaphore` and `SlotPool` are ways of finding the right gate.
 *
 * GATE1  `inUse`, the sum of the widths held, rises above `capacity` in no way but by shrinking the capacity.
 * GATE2  FIFO: a slot is granted to the head of the queue or, if none waits, to the caller. No one overtakes, not
 *     even a narrow waiter a wide one; so no waiter starves.
 * GATE3  Hand-off: when `free` returns, the slot is already the next waiter's. Therefore a free slot and a waiter that it
 *     would serve never exist side by side.
 * GATE4  A waiter that is aborted, times out or is refused consumes no slot, and leaves no timer, listener or queue entry.
 * GATE5  acquired = released + expired + the number held.
 *
 * Every operation is O(1), but that one hand-off may serve several waiters, and `close` and a shrinking `resize` look
 * at all of them. State is consistent whenever foreign code may run (`onEvent`, listeners of a slot's signal), so that
 * it may call back in.
 *
 * Source: the shape of Go's x/sync/semaphore; unlike there, asking for more than the capacity is an error, not an
 * endless wait.
 */
import { ClosedError, QueueFullError } from "./errors.ts";
import { emit } from "./events.ts";
import type { GateContext } from "./gate-context.ts";
import type { Link, LinkedList } from "./linked-list.ts";
import { callback } from "./options.ts";
import {
  type AcquireOptions,
  checkCall,
  type Policy,
  type SlotPolicy,
  TRY_RULES,
  type TryAcquireOptions,
  tooWide,
} from "./policy.ts";
import { runWithSlot, type Work } from "./run-with-slot.ts";
import { unwatch, watch } from "./signals.ts";
import { HeldSlot } from "./slot.ts";
import type { SlotNumbers } from "./slot-numbers.ts";
import { met, type Resolve, Ticket } from "./ticket.ts";
import { WaiterQueue } from "./waiter-queue.ts";

type Waiter = Resolve | Ticket;

/** Why a wait ended without a slot, by the name of its counter. */
type Refusal = "aborted" | "timedOut" | "rejected";

export class Gate implements Link {
  // Only declared, where the constructor sets it: a field would be written twice, here and in the bundle.
  declare readonly context: GateContext;
  /** For an owner that finds it by a key or name: nothing of it is held, and none waits. */
  declare readonly onIdle: ((gate: Gate) => void) | undefined;
  /** The last gate on the way to a slot: the pool's common one, else this one. Its capacity bounds the numbers of slots. */
  declare readonly root: Gate;
  /** By which its registry finds it. */
  declare readonly name: string | undefined;
  /** Of the keyed kinds, while something of it is held or waits: its key. After that it may serve another. */
  declare key: unknown;
  declare capacity: number;
  inUse = 0;
  // Not there until set: `numbers` when a number is read, the others by a registry.
  declare numbers: SlotNumbers | undefined;
  declare sinceAt: number;
  declare list: LinkedList | undefined;
  declare previous: Link | undefined;
  declare next: Link | undefined;
  #isServing = false;
  /** Those who wait until nothing is held. */
  readonly #idle: (() => void)[] = [];
  readonly #queue = new WaiterQueue<Resolve, Ticket>();

  constructor(capacity: number, context: GateContext, onIdle?: (gate: Gate) => void, name?: string) {
    this.capacity = capacity;
    this.context = context;
    this.onIdle = onIdle;
    this.root = context.root ?? this;
    this.name = name;
    this.key = undefined;
  }

  get waiting(): number {
    return this.#queue.size;
  }

  /** What is behind every `acquire`. */
  acquire(policy: Policy, options?: AcquireOptions): Promise<HeldSlot> {
    return Promise.resolve(this.#enter(policy, options));
  }

  /** What is behind every `tryAcquire`. */
  tryAcquire(policy: Policy, options?: TryAcquireOptions): HeldSlot | undefined {
    try {
      if (options !== undefined) checkCall(options, this.#widest, TRY_RULES);
      return this.#tryEnter(policy, options?.width);
    } finally {
      // It may have been opened for this.
      if (this.onIdle) this.#serve();
    }
  }

  /** What is behind every `run`. */
  run<T>(policy: Policy, work: Work<T>, options?: AcquireOptions): Promise<Awaited<T>> {
    if (typeof work === "function") return runWithSlot(this.#enter(policy, options), policy, work, options);
    this.#serve();
    return Promise.reject(callback("work", work));
  }

  /** A slot if one can be had now and nothing special is asked, else a promise of one. Never throws. */
  #enter(policy: Policy, options?: AcquireOptions): HeldSlot | Promise<HeldSlot> {
    if (options === undefined) {
      const slot = this.#tryEnter(policy);
      if (slot) return slot;
      const isPlain = policy.isPlain && policy.acquireTimeoutMs === Infinity && this.#crowd < policy.maxWaiters;
      if (isPlain && this.root === this && !this.context.closed) {
        const promise = new Promise<HeldSlot>(capture);
        this.#push(resolveNew);
        return promise;
      }
    }
    return this.#ask(policy, options);
  }

  /** Apart from `#enter`, which would otherwise make a closure's context for every call (W1, W2r). */
  #ask(policy: Policy, options?: AcquireOptions): Promise<HeldSlot> {
    const promise = new Promise<HeldSlot>((resolve, reject) => {
      checkCall(options, this.#widest);
      const ticket = new Ticket(this, policy, options?.width);
      ticket.waitSignal = options?.signal;
      ticket.timeoutMs = options?.timeoutMs ?? policy.acquireTimeoutMs;
      ticket.resolve = resolve;
      ticket.reject = reject;
      this.#arrive(ticket);
    });
    // It may have been opened for a request that makes no sense.
    if (this.inUse === 0) this.#serve();
    return promise;
  }

  /** A slot if one can be had now, of a width that fits at all. Must stay small enough for the engine to inline (W1, W5). */
  #tryEnter(policy: Policy, width = 1): HeldSlot | undefined {
    const { context, root } = this;
    if (context.closed !== undefined || !this.#fits(width)) return undefined;
    if (root !== this) {
      if (!root.#fits(width)) return undefined;
      root.inUse += width;
    }
    this.inUse += width;
    if (!policy.isPlain) return this.#grant(new Ticket(this, policy, width));
    context.counters.acquired++;
    return new HeldSlot(this, width);
  }

  idle(): Promise<void> {
    return new Promise((resolve) => (this.inUse > 0 ? this.#idle.push(resolve) : resolve()));
  }

  /** A slot was given back by its holder, or taken back. */
  free(slot: HeldSlot, width: number, how: "released" | "expired"): void {
    this.context.counters[how]++;
    if (slot.policy) this.#forget(slot, slot.policy, how);
    this.inUse -= width;
    // Both are free before either is handed on: its key's next waiter may need the root's, too.
    if (this.root !== this) this.root.#vacate(width);
    if (this.waiting > 0 || this.onIdle !== undefined || this.#idle.length > 0) this.#serve();
  }

  /** A wait is over without a slot. */
  reject(ticket: Ticket, how: Refusal, error: unknown): void {
    this.#endWait(ticket);
    this.#fail(ticket, how, error);
    this.#serve();
  }

  resize(capacity: number, policy?: Policy): void {
    this.capacity = capacity;
    for (const waiter of this.#queue.all()) {
      const ticket = waiter as Ticket;
      const error = tooWide(ticket.width, this.#widest);
      if (error) this.reject(ticket, "rejected", error);
    }
    if (policy) emit(policy, this, "resized");
    this.#serve();
  }

  close(policy: Policy, reason: unknown): void {
    const { context } = this;
    if (context.closed) return;
    context.closed = new ClosedError({ semaphore: policy.name }, reason);
    this.clear("rejected", context.closed);
    emit(policy, this, "closed");
  }

  /** All present waiters are refused. They leave first, so that none of them is served in between. */
  clear(how: Refusal, error: unknown): void {
    const waiters = this.#queue.all();
    for (const waiter of waiters) this.#endWait(waiter);
    for (const waiter of waiters) this.#fail(waiter, how, error);
    this.#serve();
  }

  /**
   * Serves the head of the queue for as long as it fits, and notifies the owner when nothing is held. A loop,
   * never recursion: 100,000 may leave in one turn, each leaving calls this, and the outermost call does it all.
   */
  #serve(): void {
    if (this.waiting > 0 && !this.#isServing) {
      this.#isServing = true;
      while (this.waiting > 0 && this.inUse < this.capacity && this.#serveFirst());
      this.#isServing = false;
    }
    if (this.inUse + this.waiting === 0) {
      if (this.#idle.length > 0) for (const resolve of this.#idle.splice(0)) resolve();
      this.onIdle?.(this);
    }
  }

  #forget(slot: HeldSlot, policy: SlotPolicy, how: "released" | "expired"): void {
    const { context } = this;
    const { knownId, knownNumber } = slot;
    if (knownId) context.slots.delete(knownId);
    if (knownNumber) this.root.numbers?.release(knownNumber);
    context.time(slot, Infinity, 0);
    emit(policy, this, how, undefined, knownNumber);
  }

  #serveFirst(): boolean {
    const waiter = this.#queue.first();
    if (typeof waiter === "object") return this.#settle(waiter);
    // The way of most slots under load, and so the shortest (W2).
    this.#pop(waiter);
    this.inUse++;
    this.context.counters.acquired++;
    waiter(new HeldSlot(this, 1));
    return true;
  }

  /** Its wait has ended. */
  #fail(waiter: Waiter, how: Refusal, error: unknown): void {
    this.context.counters[how]++;
    if (typeof waiter === "function") return waiter(Promise.reject(error));
    const { policy, gate, width, sinceAt } = waiter;
    waiter.reject(error);
    if (how !== "rejected")
      emit(policy, gate, how === "aborted" ? how : "timed-out", gate.context.clock.now() - sinceAt);
    if (gate !== this) gate.#vacate(width);
  }

  /** Here comes one who may have to wait. */
  #arrive(ticket: Ticket): void {
    ticket.at = this;
    const { policy, waitSignal, timeoutMs } = ticket;
    if ((this.waiting === 0 || waitSignal?.aborted) && this.#settle(ticket)) return;
    if (policy.traceTimeouts && timeoutMs < Infinity) ticket.trace ??= new Error();
    if (timeoutMs === 0) ticket.due(ticket.sinceAt);
    else if (this.#crowd >= policy.maxWaiters) {
      this.reject(ticket, "rejected", new QueueFullError(met(this, ticket)));
    } else {
      this.#push(ticket);
      if (waitSignal) watch(ticket, waitSignal);
      // It has one timeout for both stages.
      if (!ticket.list) this.context.time(ticket, timeoutMs, ticket.sinceAt);
    }
  }

  /** Ends the wait here if it can end now. */
  #settle(ticket: Ticket): boolean {
    const { waitSignal, width } = ticket;
    const { closed } = this.context;
    // Our listener may not have run yet, but the release of this slot ran after the abort.
    if (waitSignal?.aborted) this.reject(ticket, "aborted", waitSignal.reason);
    else if (closed) this.reject(ticket, "rejected", closed);
    else if (this.inUse + width > this.capacity) return false;
    else {
      this.#pop(ticket);
      this.inUse += width;
      if (this.root !== this) this.root.#arrive(ticket);
      else {
        this.#endWait(ticket);
        this.#grant(ticket, this.context.clock.now());
      }
    }
    return true;
  }

  #grant(ticket: Ticket, now: number = ticket.sinceAt): Ticket {
    const { policy, gate, sinceAt } = ticket;
    const { context } = this;
    ticket.sinceAt = now;
    context.counters.acquired++;
    context.time(ticket, policy.ttlMs, now);
    if (policy.onEvent) emit(policy, gate, "acquired", now - sinceAt, ticket.number);
    ticket.resolve?.(ticket);
    return ticket;
  }

  #endWait(waiter: Waiter): void {
    this.#pop(waiter);
    if (typeof waiter === "function") return;
    waiter.at = undefined;
    if (waiter.waitSignal) unwatch(waiter, waiter.waitSignal);
    this.context.time(waiter, Infinity, 0);
  }

  #push(waiter: Waiter): void {
    this.#queue.push(waiter);
    this.context.await(1);
  }

  /** Takes it out of the queue, if it is in. */
  #pop(waiter: Waiter): void {
    if (this.#queue.remove(waiter)) this.context.await(-1);
  }

  /** How many wait, as `maxWaiters` counts: of keys on their own those of the key, else all. */
  get #crowd(): number {
    return this.onIdle && this.root === this ? this.waiting : this.context.waiting;
  }

  #vacate(width: number): void {
    this.inUse -= width;
    this.#serve();
  }

  #fits(width: number): boolean {
    return this.inUse + width <= this.capacity && this.waiting === 0;
  }

  /** The width that fits if nothing else is held. */
  get #widest(): number {
    return Math.min(this.capacity, this.root.capacity, 2 ** 53);
  }
}

let resolveNew: Resolve;

/** One executor for all plain waiters: a closure for each would be a fifth of what they cost. */
function capture(resolve: Resolve): void {
  resolveNew = resolve;
}
