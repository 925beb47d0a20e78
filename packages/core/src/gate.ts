/**
 * A counter of slots with a queue. This is the only place where slots are granted, handed over and given back.
 * `Semaphore`, `KeyedSemaphore` and `SlotPool` select the gate and pass the call to it.
 *
 * GATE1  `inUse` is the sum of the widths held. It exceeds `capacity` only after a `resize` to a smaller capacity.
 * GATE2  FIFO: a slot goes to the head of the queue, or to the caller if the queue is empty. No waiter overtakes another:
 *     even a narrow waiter does not overtake a wide one. So no waiter starves.
 * GATE3  Hand-off: when `free` returns, the next waiter already has the slot. So the head of the queue never waits while
 *     enough slots for it are free.
 * GATE4  A waiter that is aborted, times out or is refused consumes no slot. It leaves no timer, listener or queue entry.
 * GATE5  acquired = released + expired + the number held. Each slot counts once, whatever its width.
 *
 * Every operation takes O(1) time, with two exceptions: one hand-off may serve several waiters, and `close`, `clear` and
 * `resize` visit every waiter. The state is consistent whenever foreign code may run (`onEvent`, listeners of a slot's
 * signal), so that code may call the gate again.
 *
 * Source: the design of Go's x/sync/semaphore. Unlike there, a request for more than the capacity is an error and does
 * not wait for ever.
 */
import { ClosedError, QueueFullError } from "./errors.ts";
import { emit } from "./events.ts";
import type { GateContext } from "./gate-context.ts";
import type { Link, LinkedList } from "./linked-list.ts";
import { callback, check, type Rules } from "./options.ts";
import {
  type AcquireOptions,
  type Policy,
  readCall,
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
  // The constructor sets these fields, so they are only declared. An initializer would write each of them twice, and make
  // the bundle larger.
  declare readonly context: GateContext;
  /** Called when no slot is held and no caller waits. Only gates that belong to a key or a name have it. */
  declare readonly onIdle: ((gate: Gate) => void) | undefined;
  /** In a pool the gate of the common limit, otherwise this gate. Its capacity is the highest slot number. */
  declare readonly root: Gate;
  /** The name under which its registry finds it. */
  declare readonly name: string | undefined;
  /** The key that uses this gate. It is reset when the gate becomes idle, because another key may then reuse the gate. */
  declare key: unknown;
  declare capacity: number;
  inUse = 0;
  // These fields do not exist until they are set: `numbers` when a slot number is first read, the others by a registry.
  declare numbers: SlotNumbers | undefined;
  declare sinceAt: number;
  declare list: LinkedList | undefined;
  declare previous: Link | undefined;
  declare next: Link | undefined;
  #isServing = false;
  /** Resolve functions of the pending `idle()` calls. */
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

  /** Implements `acquire` of every class. */
  acquire(policy: Policy, options?: AcquireOptions): Promise<HeldSlot> {
    try {
      return Promise.resolve(this.#enter(policy, this.#read(options)));
    } catch (error) {
      // The owner may have created the gate for this call. This reports it as idle.
      this.#serve();
      return Promise.reject(error);
    }
  }

  /** Implements `tryAcquire` of every class. */
  tryAcquire(policy: Policy, options?: TryAcquireOptions): HeldSlot | undefined {
    try {
      return this.#tryEnter(policy, this.#read(options, TRY_RULES)?.width);
    } finally {
      // The owner may have created the gate for this call. If the call took nothing, this reports the gate as idle.
      if (this.onIdle) this.#serve();
    }
  }

  /** Implements `run` of every class. */
  run<T>(policy: Policy, work: Work<T>, options?: AcquireOptions): Promise<Awaited<T>> {
    try {
      if (typeof work !== "function") check("work", callback, work);
      const call = this.#read(options);
      return runWithSlot(this.#enter(policy, call), policy, work, call?.signal);
    } catch (error) {
      // The owner may have created the gate for this call. This reports it as idle.
      this.#serve();
      return Promise.reject(error);
    }
  }

  /** Throws if the options of a call are invalid. */
  #read(options: AcquireOptions | undefined, rules?: Rules<TryAcquireOptions>): AcquireOptions | undefined {
    return options === undefined ? undefined : readCall(options, this.#widest, rules);
  }

  /** Returns a slot if one is free, otherwise a promise of a slot. */
  #enter(policy: Policy, call?: AcquireOptions): HeldSlot | Promise<HeldSlot> {
    const slot = call?.signal?.aborted ? undefined : this.#tryEnter(policy, call?.width);
    if (slot) return slot;
    const isPlain = !call && policy.isPlain && policy.acquireTimeoutMs === Infinity && this.root === this;
    if (isPlain && this.#crowd < policy.maxWaiters && !this.context.closed) {
      const promise = new Promise<HeldSlot>(capture);
      this.#push(resolveNew);
      return promise;
    }
    return this.#ask(policy, call);
  }

  /** Separate from `#enter`: a closure there would allocate a context in every call (W1, W2r). */
  #ask(policy: Policy, call?: AcquireOptions): Promise<HeldSlot> {
    return new Promise<HeldSlot>((resolve, reject) => {
      const ticket = new Ticket(this, policy, call?.width);
      ticket.waitSignal = call?.signal;
      ticket.timeoutMs = call?.timeoutMs ?? policy.acquireTimeoutMs;
      ticket.resolve = resolve;
      ticket.reject = reject;
      this.#arrive(ticket);
    });
  }

  /**
   * Returns a slot if one is free and no caller waits. The caller has checked `width` against `#widest`. This must stay
   * small enough for the engine to inline (W1, W5).
   */
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

  /** Called when a slot is released or expires. */
  free(slot: HeldSlot, width: number, how: "released" | "expired"): void {
    this.context.counters[how]++;
    if (slot.policy) this.#cleanUp(slot, slot.policy, how);
    this.inUse -= width;
    // Free the slot at both gates before either is handed over: the next waiter of the key may also need the root's.
    if (this.root !== this) this.root.#vacate(width);
    if (this.waiting > 0 || this.onIdle !== undefined || this.#idle.length > 0) this.#serve();
  }

  /** Ends a wait without a slot. */
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

  /** Rejects all present waiters. All of them leave the queue first, so that none is served while others are rejected. */
  clear(how: Refusal, error: unknown): void {
    const waiters = this.#queue.all();
    for (const waiter of waiters) this.#endWait(waiter);
    for (const waiter of waiters) this.#fail(waiter, how, error);
    this.#serve();
  }

  /**
   * Serves the head of the queue as long as it fits, and reports the gate to its owner when it is idle. This is a loop
   * and not a recursion: 100,000 waiters may leave in one turn. Each of them calls this method, and the outermost call
   * does the work of all.
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

  #cleanUp(slot: HeldSlot, policy: SlotPolicy, how: "released" | "expired"): void {
    const { context } = this;
    const { knownId, knownNumber } = slot;
    if (knownId) context.slots.delete(knownId);
    if (knownNumber) this.root.numbers?.release(knownNumber);
    context.time(slot, Infinity, 0);
    emit(policy, this, how, undefined, knownNumber);
  }

  #serveFirst(): boolean {
    const waiter = this.#queue.first();
    if (typeof waiter === "object") return this.#tryToEnd(waiter);
    // Most slots under load take this path, so it is the shortest one (W2).
    this.#pop(waiter);
    this.inUse++;
    this.context.counters.acquired++;
    waiter(new HeldSlot(this, 1));
    return true;
  }

  /** Rejects a waiter that has left the queue, counts it and emits the event. */
  #fail(waiter: Waiter, how: Refusal, error: unknown): void {
    this.context.counters[how]++;
    if (typeof waiter === "function") return waiter(Promise.reject(error));
    const { policy, gate, width, sinceAt } = waiter;
    waiter.reject(error);
    if (how !== "rejected")
      emit(policy, gate, how === "aborted" ? how : "timed-out", gate.context.clock.now() - sinceAt);
    if (gate !== this) gate.#vacate(width);
  }

  /** Grants or refuses a request now if possible. Otherwise puts it in the queue. */
  #arrive(ticket: Ticket): void {
    ticket.at = this;
    const { policy, waitSignal, timeoutMs } = ticket;
    if ((this.waiting === 0 || waitSignal?.aborted) && this.#tryToEnd(ticket)) return;
    if (policy.traceTimeouts && timeoutMs < Infinity) ticket.trace ??= new Error();
    if (timeoutMs === 0) ticket.due(ticket.sinceAt);
    else if (this.#crowd >= policy.maxWaiters) {
      // In a pool `maxWaiters` counts the waiters of all keys, so the numbers are those of the pool and not of the key.
      const full = { ...met(this.root, ticket), waiting: this.#crowd, maxWaiters: policy.maxWaiters };
      this.reject(ticket, "rejected", new QueueFullError(full));
    } else {
      this.#push(ticket);
      // In a pool one timeout covers both stages. It already runs if the ticket has waited for its key.
      if (!ticket.list) this.context.time(ticket, timeoutMs, ticket.sinceAt);
      if (waitSignal) watch(ticket, waitSignal);
    }
  }

  /** Ends the wait at this gate if that is possible now. Returns whether it did. */
  #tryToEnd(ticket: Ticket): boolean {
    const { waitSignal, width } = ticket;
    const { closed } = this.context;
    // The signal may have aborted before our listener runs: an earlier listener of it may have released this slot.
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

  /** Removes the waiter from the queue if it is there. */
  #pop(waiter: Waiter): void {
    if (this.#queue.remove(waiter)) this.context.await(-1);
  }

  /** The number of waiters that `maxWaiters` limits: in a `KeyedSemaphore` those of this key, otherwise all. */
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

  /** The largest width that fits when nothing is held. */
  get #widest(): number {
    return Math.min(this.capacity, this.root.capacity, 2 ** 53);
  }
}

let resolveNew: Resolve;

/** One executor for all plain waiters. A closure for each of them would be a fifth of their cost. */
function capture(resolve: Resolve): void {
  resolveNew = resolve;
}
