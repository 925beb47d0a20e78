/**
 * The algorithm behind `Limiter`: it grants slots, takes them back and refuses waiters.
 *
 * A request needs a slot, a slot of its key, and its cost from several budgets. If it took them one by one, requests
 * would hold one while they wait for another: slots would be idle, and two requests could wait for each other. So a
 * grant takes everything or nothing, in one step, and no user code runs in between. Two questions remain: which waiter
 * is next (`waiting-line.ts`), and what happens if the budgets cannot pay for it yet:
 *
 *   - It lacks something that is common to all (a slot, a common budget): all others wait behind it. If cheaper
 *     requests could pass, the budget might never reach what it needs. Levels above it have no waiter that could be
 *     granted; otherwise that waiter would be next.
 *   - It lacks something of its own key: it is skipped. Otherwise one key could stop all others. Nothing is reserved
 *     for it, because its key may lack it for a long time.
 *
 * LIMIT1  All or nothing: a waiter holds nothing. When a slot is granted, one step charges every budget and counts the
 *     slot for its key and for the limiter.
 * LIMIT2  Slots: `inUse` is above `capacity` only after the capacity was lowered. Budgets: see `budget.ts`.
 * LIMIT3  Order: a waiter is granted only if the waiting line named it first (LINE1 to LINE4). A caller that arrives
 *     while others wait joins the line. After every step, the first waiter lacks a slot or budget, or there is no
 *     waiter.
 * LIMIT4  A waiter that is aborted, times out or is refused was charged nothing and leaves no timer, listener or entry.
 * LIMIT5  Work that never started costs nothing: `run` gives back the whole charge. An expired slot keeps its charge.
 * LIMIT6  There is at most one timer, and only while a caller waits or a ttl runs (`agenda.ts`). It keeps the
 *     process alive only while a caller waits, for a slot or for a `run` that rejects when its slot expires. It is set for the
 *     earliest time at which the first waiter can be paid, a key can pay, a waiter rises, or a deadline is due.
 * LIMIT7  acquired = released + expired + the number held.
 *
 * Every operation is O(levels + log n) in waiters and keys for each waiter that it serves; `close`, `clear` and
 * `update` visit all waiters. The state is consistent whenever user code may run (`onEvent`, listeners of a slot's
 * signal), so that this code may call the limiter again.
 */
import { Agenda, type Due } from "../agenda.ts";
import type { ClosedError } from "../errors.ts";
import type { SemaphoreEventType } from "../events.ts";
import { callForeign } from "../foreign-call.ts";
import type { Counters } from "../gate-context.ts";
import { type Rules, readOptions } from "../options.ts";
import { unwatch, watch } from "../signals.ts";
import { SlotNumbers } from "../slot-numbers.ts";
import { AdaptiveSlots } from "./adaptive-slots.ts";
import { type Ask, askRules, tryRules } from "./ask.ts";
import type { KeyState } from "./key-state.ts";
import { Ledger } from "./ledger.ts";
import { GrantedSlot, LimiterTicket, type ReleaseOptions } from "./limiter-slot.ts";
import { type LimiterOptions, type LimiterPolicy, resolveAdaptive, resolveLimiterPolicy } from "./options.ts";
import { closedError, pausedError, queueFullError } from "./refusals.ts";
import { SteadyTime } from "./steady-time.ts";
import { WaitingLine } from "./waiting-line.ts";

const NOTHING_ASKED: Ask = {};

export class LimiterGate {
  readonly policy: LimiterPolicy;
  readonly time: SteadyTime;
  readonly ledger: Ledger;
  readonly line: WaitingLine;
  readonly agenda: Agenda;
  readonly adaptive: AdaptiveSlots | undefined;
  readonly numbers: SlotNumbers = new SlotNumbers();
  readonly counters: Counters = { acquired: 0, released: 0, expired: 0, timedOut: 0, aborted: 0, rejected: 0 };
  /** The held slots whose id was read. */
  readonly byId: Map<string, GrantedSlot> = new Map();
  /** Called when nothing is held and no caller waits. */
  readonly onIdle: (() => void)[] = [];
  capacity: number;
  inUse = 0;
  waiting = 0;
  /** The number of `run` calls that end when their slot expires. */
  #runs = 0;
  overloads = 0;
  paused: "no" | "waiting" | "refusing" = "no";
  closed: ClosedError | undefined;
  /** Set by an overload with `retryAfterMs`: nothing is granted before this time. */
  heldBackUntil: number = -Infinity;
  readonly isKeyed: boolean;
  readonly #tryRules: ReturnType<typeof tryRules>;
  readonly #askRules: Rules<Ask>;
  /** The next time at which a waiter might be served. */
  readonly #wake: Due = { dueAt: 0, agendaAt: -1, due: (now) => this.serve(now) };
  #arrivals = 0;
  #isServing = false;

  constructor(options: LimiterOptions) {
    const policy = resolveLimiterPolicy(options);
    const { slots, levels, ageAfterMs, perKey } = policy;
    this.policy = policy;
    this.isKeyed = perKey !== undefined;
    this.#tryRules = tryRules(levels, this.isKeyed);
    this.#askRules = askRules(this.#tryRules);
    this.time = new SteadyTime(policy.clock);
    const adaptive = resolveAdaptive(policy.adaptive, slots);
    this.adaptive = adaptive && new AdaptiveSlots(adaptive, slots);
    this.capacity = this.adaptive?.limit ?? slots;
    this.line = new WaitingLine(levels, ageAfterMs, perKey?.slots ?? Infinity);
    this.ledger = new Ledger(policy, this.time.now());
    this.agenda = new Agenda(this.time);
    this.agenda.keepAlive(false);
  }

  /** Reads the options of `acquire` and `run`. Throws if they are invalid. */
  read(options: Ask | undefined): Ask | undefined {
    return options === undefined ? undefined : readOptions(options, this.#askRules);
  }

  /**
   * Returns a slot if the request can be granted now, otherwise a promise of one. Throws if the cost is invalid. `ask` comes
   * from `read`.
   */
  enter(ask: Ask | undefined): GrantedSlot | Promise<GrantedSlot> {
    if (ask === undefined && !this.ledger.areDefaultsDear) {
      const slot = this.#takeFree(this.ledger.keys.none, this.ledger.defaults, undefined);
      return slot ?? this.#arrive(this.#ticket(NOTHING_ASKED), this.policy.acquireTimeoutMs);
    }
    const asked = ask ?? NOTHING_ASKED;
    const { timeoutMs = this.policy.acquireTimeoutMs, signal, key } = asked;
    const costs = this.ledger.costsOf(asked.cost, this.#isLimited(key));
    const slot = signal?.aborted ? undefined : this.#takeFree(this.#keyOf(key), costs, key);
    if (slot !== undefined) return slot;
    return this.#arrive(this.#ticket(asked, costs), timeoutMs, signal);
  }

  /** Returns a slot if the request can be granted now. */
  tryEnter(options?: Ask): GrantedSlot | undefined {
    const ask = readOptions(options, this.#tryRules as Rules<Ask>);
    const costs = this.ledger.costsOf(ask.cost, this.#isLimited(ask.key));
    const slot = this.#takeFree(this.#keyOf(ask.key), costs, ask.key);
    if (slot !== undefined || this.waiting === 0) return slot;
    if (this.closed || this.paused !== "no") return undefined;
    // The waiters may all be skipped at the moment; only the line can decide that.
    const ticket = this.#ticket(ask, costs);
    this.#queue(ticket);
    if (ticket.at === undefined) return ticket;
    this.#endWait(ticket, ticket.sinceAt);
    // The timer may have been set for this ticket.
    this.serve(ticket.sinceAt);
    return undefined;
  }

  /** Ends the holding of a slot after a release or an expiry. */
  free(slot: GrantedSlot, how: "released" | "expired", { outcome = "ok", retryAfterMs }: ReleaseOptions): void {
    const { keyState } = slot;
    this.counters[how]++;
    this.inUse--;
    keyState.inUse--;
    if (slot.isMarked) this.#cleanUp(slot);
    if (outcome !== "ignore" && (this.adaptive || outcome === "overload")) this.#heed(slot, outcome, retryAfterMs);
    if (this.policy.onEvent) this.emit(slot.key, how, undefined, slot.knownNumber);
    if (this.waiting > 0 || keyState !== this.ledger.keys.none || this.onIdle.length > 0) this.#moved(keyState);
  }

  /** Handles an answer that was not ignored: an overload may delay all requests, and adaptive slots change. */
  #heed(slot: GrantedSlot, outcome: "ok" | "overload", retryAfterMs: number | undefined): void {
    const isOverload = outcome === "overload";
    if (isOverload) this.overloads++;
    if (retryAfterMs) this.heldBackUntil = Math.max(this.heldBackUntil, this.time.now() + retryAfterMs);
    this.adaptive?.answer(isOverload, slot.epoch ?? 0);
    this.capacity = this.adaptive?.limit ?? this.capacity;
  }

  /** Starts the ttl of a slot again. */
  lease(slot: GrantedSlot, ttlMs: number): void {
    slot.agendaAt ??= -1;
    slot.isMarked = true;
    this.agenda.schedule(slot, this.time.now() + ttlMs);
  }

  /** Ends a wait without a slot. */
  reject(ticket: LimiterTicket, how: "aborted" | "timedOut" | "rejected", error: unknown): void {
    if (ticket.at === undefined) return;
    const now = this.time.now();
    this.#endWait(ticket, now);
    this.#turnAway(ticket, how, error, now);
    this.serve(now);
  }

  /** Ends all waits, in the order of arrival. */
  refuseAll(how: "aborted" | "rejected", error: unknown): void {
    this.withoutServing(() => {
      for (const ticket of this.ledger.keys.waiters()) this.reject(ticket, how, error);
    });
  }

  /** Runs several steps, and serves waiters only after the last one. */
  withoutServing(steps: () => void): void {
    const wasServing = this.#isServing;
    this.#isServing = true;
    steps();
    this.#isServing = wasServing;
    this.serve(this.time.now());
  }

  close(reason: unknown): void {
    if (this.closed) return;
    this.closed = closedError(this, reason);
    this.refuseAll("rejected", this.closed);
    this.emit(undefined, "closed");
  }

  /**
   * Serves the first waiter as long as it can be paid. This is a loop, not recursion: the outermost call does all the
   * work.
   */
  serve(now: number): void {
    if (this.#isServing) return;
    this.#isServing = true;
    let wakeAt = Infinity;
    while (this.waiting > 0 && this.paused === "no") {
      wakeAt = this.#serveFirst(now);
      if (wakeAt > now) break;
    }
    this.#isServing = false;
    this.#keepAlive();
    this.agenda.schedule(this.#wake, this.waiting > 0 ? wakeAt : Infinity);
    this.#checkIdle();
  }

  /** Adds one `run` that ends when its slot expires, or removes one. */
  await(more: 1 | -1): void {
    this.#runs += more;
    this.#keepAlive();
  }

  #keepAlive(): void {
    this.agenda.keepAlive(this.waiting + this.#runs > 0);
  }

  /** Returns 0 if the first waiter was served or refused, otherwise the time to try again. */
  #serveFirst(now: number): number {
    if (this.heldBackUntil > now) return this.heldBackUntil;
    const ticket = this.line.first(now);
    if (ticket === undefined) return this.line.changesAt;
    if (ticket.waitSignal?.aborted) {
      // The signal may abort and a listener may release a slot before our own listener runs.
      this.reject(ticket, "aborted", ticket.waitSignal.reason);
      return 0;
    }
    if (this.inUse >= this.capacity) {
      this.adaptive?.bind();
      return Infinity;
    }
    const payableAt = this.ledger.payableAt(ticket.costs, now);
    if (payableAt > now) return Math.min(payableAt, this.line.changesAt);
    this.#grant(ticket, now);
    return 0;
  }

  #grant(ticket: LimiterTicket, now: number): void {
    // Charged before the ticket leaves the line, so that its key moves to its new place only once.
    this.#occupy(ticket.keyState, ticket.costs, now);
    this.#endWait(ticket, now);
    this.#hold(ticket, now);
    ticket.resolve?.(ticket);
  }

  /** Starts what a held ticket needs beyond counting: its ttl, its epoch and its event. */
  #hold(ticket: LimiterTicket, now: number): void {
    const waitedMs = now - ticket.sinceAt;
    ticket.sinceAt = now;
    ticket.epoch = this.adaptive?.epoch;
    if (this.policy.ttlMs < Infinity) {
      this.agenda.schedule(ticket, now + this.policy.ttlMs);
      ticket.isMarked = true;
    }
    if (this.policy.onEvent) this.emit(ticket.key, "acquired", waitedMs, ticket.number);
  }

  /** Returns a slot if no caller waits and everything that the request needs is available. */
  #takeFree(keyState: KeyState, costs: readonly number[], key: unknown): GrantedSlot | undefined {
    if (this.waiting > 0 || this.inUse >= this.capacity || this.paused !== "no" || this.closed) return undefined;
    const { policy, ledger, line } = this;
    const isTimeless = policy.isPlain && costs.length === 0 && this.heldBackUntil === -Infinity;
    const now = isTimeless ? 0 : this.time.now();
    if (this.heldBackUntil > now || ledger.payableAt(costs, now) > 0) return undefined;
    const isLimited = keyState !== ledger.keys.none;
    if (isLimited && (keyState.inUse >= line.slotsPerKey || keyState.payableAt(costs, now) > 0)) return undefined;
    this.#occupy(keyState, costs, now);
    if (policy.isPlain) {
      const slot = new GrantedSlot(this, keyState, key, costs, now);
      if (this.adaptive) slot.epoch = this.adaptive.epoch;
      return slot;
    }
    const ticket = new LimiterTicket(this, keyState, key, costs, now);
    this.#hold(ticket, now);
    return ticket;
  }

  #occupy(keyState: KeyState, costs: readonly number[], now: number): void {
    this.counters.acquired++;
    this.inUse++;
    keyState.inUse++;
    this.ledger.keys.use(keyState);
    if (costs.length > 0) this.ledger.charge(keyState, costs, now);
  }

  /** Handles a request that may have to wait. */
  #arrive(ticket: LimiterTicket, timeoutMs: number, signal?: AbortSignal): Promise<GrantedSlot> {
    return new Promise((resolve, reject) => {
      ticket.resolve = resolve;
      ticket.reject = reject;
      const { sinceAt } = ticket;
      if (signal?.aborted) return this.#turnAway(ticket, "aborted", signal.reason, sinceAt);
      if (this.closed) return this.#turnAway(ticket, "rejected", this.closed, sinceAt);
      if (this.paused === "refusing") return this.#turnAway(ticket, "rejected", pausedError(this, ticket.key), sinceAt);
      this.#queue(ticket);
      if (ticket.at === undefined) return;
      const others = this.waiting - 1;
      if (this.policy.traceTimeouts && timeoutMs < Infinity) ticket.trace = new Error("Trace");
      if (timeoutMs === 0) return ticket.due(sinceAt);
      if (others >= this.policy.maxWaiters)
        return this.reject(ticket, "rejected", queueFullError(this, ticket.key, others));
      ticket.waitSignal = signal;
      this.agenda.schedule(ticket, sinceAt + timeoutMs);
      if (signal) watch(ticket, signal);
    });
  }

  #ticket(
    { key, level = this.policy.defaultLevel }: Ask,
    costs: readonly number[] = this.ledger.defaults,
  ): LimiterTicket {
    const ticket = new LimiterTicket(this, this.#keyOf(key), key, costs, this.time.now());
    ticket.level = level;
    return ticket;
  }

  /** Adds the ticket to the line and serves all waiters that can be served, possibly including this one. */
  #queue(ticket: LimiterTicket): void {
    ticket.at = this;
    ticket.arrival = this.#arrivals++;
    this.waiting++;
    this.ledger.keys.use(ticket.keyState);
    this.line.add(ticket, ticket.sinceAt);
    this.serve(ticket.sinceAt);
  }

  #endWait(ticket: LimiterTicket, now: number): void {
    ticket.at = undefined;
    this.waiting--;
    this.line.remove(ticket, now);
    this.agenda.cancel(ticket);
    if (ticket.waitSignal) unwatch(ticket, ticket.waitSignal);
    this.ledger.keys.release(ticket.keyState);
  }

  #turnAway(ticket: LimiterTicket, how: "aborted" | "timedOut" | "rejected", error: unknown, now: number): void {
    this.counters[how]++;
    ticket.reject?.(error);
    if (how !== "rejected") this.emit(ticket.key, how === "aborted" ? how : "timed-out", now - ticket.sinceAt);
  }

  #cleanUp(slot: GrantedSlot): void {
    if (slot.knownId) this.byId.delete(slot.knownId);
    if (slot.knownNumber) this.numbers.release(slot.knownNumber);
    this.agenda.cancel(slot);
  }

  /** A key gave back a slot: another waiter may be granted. */
  #moved(keyState: KeyState): void {
    if (this.waiting > 0) {
      const now = this.time.now();
      if (keyState.waiting > 0) this.line.place(keyState, now);
      this.serve(now);
    } else this.#checkIdle();
    this.ledger.keys.release(keyState);
  }

  #checkIdle(): void {
    if (this.onIdle.length === 0 || this.inUse + this.waiting > 0) return;
    for (const callback of this.onIdle.splice(0)) callback();
  }

  #isLimited(key: unknown): boolean {
    return this.isKeyed && key !== undefined;
  }

  #keyOf(key: unknown): KeyState {
    const { keys } = this.ledger;
    return this.#isLimited(key) ? keys.find(key, this.time) : keys.none;
  }

  emit(key: unknown, type: SemaphoreEventType, waitedMs?: number, number?: number): void {
    const { name, onEvent, clock } = this.policy;
    const { capacity } = this;
    if (onEvent) callForeign(() => onEvent({ type, name, key, at: clock.now(), waitedMs, number, capacity }));
  }
}
