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
import type { Counters, GateContext } from "./gate-context.ts";
import { Link } from "./linked-list.ts";
import { type AcquireOptions, PLAIN, type Policy, problem } from "./policy.ts";
import { unwatch, watch } from "./signals.ts";
import { HeldSlot } from "./slot.ts";
import { SlotNumbers } from "./slot-numbers.ts";
import { type Resolve, Ticket } from "./ticket.ts";
import { WaiterQueue } from "./waiter-queue.ts";

type Onward = (slot: HeldSlot) => HeldSlot | Promise<HeldSlot>;

interface GateExtras {
  readonly byId: Map<string, HeldSlot>;
  readonly numbers: SlotNumbers;
  readonly onIdle: (() => void)[];
}

const NO_OPTIONS: AcquireOptions = {};

export class Gate extends Link {
  readonly context: GateContext;
  /** What its owner finds it by, if it has one. */
  readonly key: unknown;
  capacity: number;
  inUse = 0;
  waiting = 0;
  /** Tickets with a deadline, waiting or held. */
  #timed = 0;
  /** What everybody gets once it is closed. */
  closed: ClosedError | undefined = undefined;
  /** Made when somebody first waits. */
  #queue: WaiterQueue<Resolve | Ticket> | undefined = undefined;
  /** Made when somebody first asks for an id, a number or to be told of idleness: few gates are asked. */
  #extras: GateExtras | undefined = undefined;
  /** For its owner's list of idle gates. */
  idleSinceAt = 0;

  constructor(capacity: number, context: GateContext, key?: unknown) {
    super();
    this.capacity = capacity;
    this.context = context;
    this.key = key;
  }

  /**
   * A slot if one can be had now, else a promise of one, which may already be rejected. Never throws.
   * `onward` is what comes of the slot instead, at the moment it is granted: the second stage of a `SlotPool`.
   */
  enter(policy: Policy, options?: AcquireOptions, onward?: Onward, arrivedAt?: number): HeldSlot | Promise<HeldSlot> {
    if (options === undefined && onward === undefined && this.#isFree(1)) return this.take(policy);
    const { signal, timeoutMs = policy.acquireTimeoutMs, width = 1 } = options ?? NO_OPTIONS;
    const misuse = options && this.#misuseOf(width, timeoutMs, signal);
    if (misuse !== undefined) return Promise.reject(misuse);
    if (signal?.aborted) {
      this.#count("aborted", policy, 0);
      return Promise.reject(signal.reason);
    }
    if (this.#isFree(width)) {
      const slot = this.take(policy, width);
      return onward === undefined ? slot : onward(slot);
    }
    const refusal = this.#refusal(policy, timeoutMs, arrivedAt);
    if (refusal !== undefined) return Promise.reject(refusal);
    const isPlain = policy.isPlain && width === 1 && signal === undefined && timeoutMs === Infinity && !onward;
    if (isPlain) return this.#wait(undefined, undefined);
    const ticket = new Ticket(this, policy, width, arrivedAt);
    ticket.signal = signal;
    if (signal !== undefined) watch(ticket, signal);
    this.time(ticket, timeoutMs);
    return this.#wait(ticket, onward);
  }

  /** Whether a slot of that width can be had now. */
  fits(width = 1): boolean {
    const misuse = this.tooWide(width);
    if (misuse !== undefined) throw new RangeError(misuse);
    return this.#isFree(width);
  }

  /** What is wrong with a width. */
  tooWide(width: number): string | undefined {
    return width === 1 ? undefined : problem("width", width, this.capacity);
  }

  /** Only for those whom it fits, and the head of the queue. */
  take(policy: Policy, width = 1): HeldSlot {
    if (!policy.isPlain) return this.#hold(new Ticket(this, policy, width), 0);
    return this.#issue(width, undefined);
  }

  /** A slot was given back by its holder, or taken back. */
  free(width: number, ticket: Ticket | undefined, how: "released" | "expired"): void {
    this.inUse -= width;
    this.context.counters[how]++;
    if (ticket !== undefined) this.#forget(ticket, how);
    if (this.waiting > 0) this.#handOff();
    if (this.inUse === 0) this.#becameIdle();
  }

  /** A wait is over without a slot. */
  leave(waiter: Ticket, how: "aborted" | "timedOut", error: unknown): void {
    this.#refuse(waiter, how, error);
    this.#handOff();
  }

  /** Sets the timeout of a waiting or the ttl of a held ticket, or sets it anew; `Infinity` for none. */
  time(ticket: Ticket, durationMs: number, now: number = this.context.clock.now()): void {
    const { deadlines } = this.context;
    const before = ticket.list;
    if (durationMs === Infinity) deadlines.drop(ticket);
    else deadlines.set(ticket, durationMs, now);
    this.#tally(0, Number(ticket.list !== undefined) - Number(before !== undefined));
  }

  nextNumber(): number {
    return this.#asked.numbers.take(this.capacity);
  }

  /** A new id, 128 random bits. `find` knows it while the slot is held. */
  identify(slot: HeldSlot): string {
    const id = crypto.getRandomValues(new Uint32Array(4)).join("-");
    if (!slot.released) this.#asked.byId.set(id, slot);
    return id;
  }

  find(id: string): HeldSlot | undefined {
    return this.#extras?.byId.get(id);
  }

  resize(policy: Policy, capacity: number): void {
    this.capacity = capacity;
    for (const waiter of this.#waiters()) {
      const misuse = typeof waiter === "object" && this.tooWide(waiter.width);
      if (misuse) this.#refuse(waiter, "rejected", new RangeError(misuse));
    }
    emit(policy, this, "resized");
    this.#handOff();
  }

  close(policy: Policy, reason: unknown): void {
    if (this.closed !== undefined) return;
    this.closed = new ClosedError({ semaphore: policy.name }, reason);
    for (const waiter of this.#waiters()) this.#refuse(waiter, "rejected", this.closed);
    emit(policy, this, "closed");
    this.context.home?.becameIdle(this);
  }

  /** Calls back when nothing is held, at once if nothing is. */
  whenIdle(callback: () => void): void {
    this.#asked.onIdle.push(callback);
    if (this.inUse === 0) this.#becameIdle();
  }

  get #asked(): GateExtras {
    this.#extras ??= { byId: new Map(), numbers: new SlotNumbers(), onIdle: [] };
    return this.#extras;
  }

  #isFree(width: number): boolean {
    return this.waiting === 0 && this.inUse + width <= this.capacity && this.closed === undefined;
  }

  #misuseOf(width: number, timeoutMs: number, signal: AbortSignal | undefined): Error | undefined {
    const range = this.tooWide(width) ?? problem("timeoutMs", timeoutMs);
    if (range !== undefined) return new RangeError(range);
    const isSignal = signal === undefined || typeof signal?.addEventListener === "function";
    return isSignal ? undefined : new TypeError(`Expected \`signal\` to be an AbortSignal, got ${String(signal)}`);
  }

  /** Why whoever finds no slot free may not even wait. */
  #refusal(policy: Policy, timeoutMs: number, arrivedAt: number | undefined): Error | undefined {
    const { waiting, closed } = this;
    const { name: semaphore, maxWaiters } = policy;
    if (closed === undefined && timeoutMs === 0) {
      const waitedMs = arrivedAt === undefined ? 0 : this.context.clock.now() - arrivedAt;
      this.#count("timedOut", policy, waitedMs);
      return new AcquireTimeoutError({ semaphore, waitedMs, waiting });
    }
    if (closed === undefined && waiting < maxWaiters) return undefined;
    this.#count("rejected", policy, 0);
    return closed ?? new QueueFullError({ semaphore, waiting });
  }

  #wait(ticket: Ticket | undefined, onward: Onward | undefined): Promise<HeldSlot> {
    this.#queue ??= new WaiterQueue();
    const promise = new Promise<HeldSlot>(capture);
    if (ticket !== undefined) {
      const resolve = resolveNew;
      ticket.resolve = onward === undefined ? resolve : (slot) => resolve(onward(slot as HeldSlot));
      ticket.reject = rejectNew;
    }
    this.#queue.push(ticket ?? resolveNew);
    this.#tally(1, 0);
    return promise;
  }

  #waiters(): (Resolve | Ticket)[] {
    return this.#queue?.all() ?? [];
  }

  /** Serves the head of the queue for as long as it fits. A loop, never recursion: 100,000 may leave in one turn. */
  #handOff(): void {
    while (this.waiting > 0) {
      const waiter = this.#queue?.first() as Resolve | Ticket;
      if (typeof waiter === "function") {
        if (this.inUse >= this.capacity) return;
        this.#remove(waiter);
        waiter(this.#issue(1, undefined));
      } else if (waiter.signal?.aborted) {
        // Our listener has not run yet, but whoever freed the slot ran after the abort.
        this.#refuse(waiter, "aborted", waiter.signal.reason);
      } else {
        if (this.inUse + waiter.width > this.capacity) return;
        this.#remove(waiter);
        waiter.resolve?.(this.#hold(waiter, this.context.clock.now() - waiter.sinceAt));
      }
    }
  }

  #refuse(waiter: Resolve | Ticket, how: "aborted" | "timedOut" | "rejected", error: unknown): void {
    this.#remove(waiter);
    if (typeof waiter === "function") {
      // Only `close` gets here, which is not worth keeping a second function for.
      waiter(Promise.reject(error));
      this.#count(how, PLAIN, 0);
    } else {
      this.time(waiter, Infinity, 0);
      waiter.reject?.(error);
      this.#count(how, waiter.policy, this.context.clock.now() - waiter.sinceAt);
    }
  }

  /** Out of the queue, and off its signal. */
  #remove(waiter: Resolve | Ticket): void {
    this.#queue?.remove(typeof waiter === "function" ? undefined : waiter.position);
    if (typeof waiter === "object" && waiter.signal !== undefined) unwatch(waiter, waiter.signal);
    this.#tally(-1, 0);
  }

  #issue(width: number, ticket: Ticket | undefined): HeldSlot {
    const { home, counters } = this.context;
    if (this.inUse === 0) home?.becameBusy(this);
    this.inUse += width;
    counters.acquired++;
    return new HeldSlot(this, width, ticket);
  }

  /** Issues the slot of a ticket that is held from now on. */
  #hold(ticket: Ticket, waitedMs: number): HeldSlot {
    const { policy, width } = ticket;
    const slot = this.#issue(width, ticket);
    ticket.slot = slot;
    ticket.sinceAt += waitedMs;
    this.time(ticket, policy.ttlMs, ticket.sinceAt);
    if (policy.onEvent !== undefined) emit(policy, this, "acquired", waitedMs, slot.number);
    return slot;
  }

  #forget(ticket: Ticket, how: "released" | "expired"): void {
    // In a pool the key's slot goes back before the global one.
    ticket.first?.release();
    this.time(ticket, Infinity, 0);
    if (ticket.id !== undefined) this.#asked.byId.delete(ticket.id);
    if (ticket.number !== undefined) this.#asked.numbers.giveBack(ticket.number);
    emit(ticket.policy, this, how, undefined, ticket.number);
  }

  /** A deadline keeps the process alive while somebody waits who may gain by it; one that nobody waits for does not. */
  #tally(waiters: number, timed: number): void {
    const wasAwaited = this.#timed > 0 && this.waiting > 0;
    this.waiting += waiters;
    this.context.waiting += waiters;
    this.#timed += timed;
    const isAwaited = this.#timed > 0 && this.waiting > 0;
    if (isAwaited !== wasAwaited) this.context.deadlines.pin(isAwaited ? 1 : -1);
  }

  /** An acquire that got no slot. */
  #count(how: keyof Counters & ("aborted" | "timedOut" | "rejected"), policy: Policy, waitedMs: number): void {
    this.context.counters[how]++;
    if (how !== "rejected") emit(policy, this, how === "aborted" ? how : "timed-out", waitedMs);
  }

  #becameIdle(): void {
    if (this.#extras !== undefined) for (const callback of this.#extras.onIdle.splice(0)) callback();
    this.context.home?.becameIdle(this);
  }
}

let resolveNew: Resolve;
let rejectNew: (reason: unknown) => void;

/** One executor for all promises: a closure for each would be a fifth of what a waiter costs. */
function capture(resolve: Resolve, reject: (reason: unknown) => void): void {
  resolveNew = resolve;
  rejectNew = reject;
}
