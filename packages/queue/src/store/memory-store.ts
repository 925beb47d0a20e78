import { SHARED_BUCKET } from "@slotkeeper/protocol";
import type { Clock } from "slotkeeper";
import { BatchDecision, type SlotNames } from "./batch-decision.ts";
import { FactLog } from "./fact-log.ts";
import type { StoreFact } from "./facts.ts";
import type { HostBook } from "./host-book.ts";
import { HostBooks } from "./host-books.ts";
import type { Lease } from "./lease.ts";
import { restoreImage } from "./restore-image.ts";
import { SessionRecords } from "./session-records.ts";
import type * as Port from "./slot-store.ts";
import { factsOf } from "./store-facts.ts";
import type { StoreImage } from "./store-image.ts";
import { snapshotOf } from "./store-snapshot.ts";

export interface MemoryStoreOptions {
  readonly clock: Clock;
  /** Makes slot tokens: at least 128 random bits. */
  readonly newToken: () => string;
  /**
   * How long a waiter is believed alive without being registered again. Only for several engines on one store object:
   * one engine and its store die together.
   */
  readonly waiterTtlMs?: number;
  /** How long a host without users is remembered. */
  readonly idleMs?: number;
  /** What an earlier life left behind. Its leases may be in any hands: none of them is taken for uncollected. */
  readonly image?: StoreImage;
  /**
   * Told of every change that must outlive the process, in the turn of the call that made it, before the call returns.
   * Whoever keeps the facts holds the call's answer back until it has.
   */
  readonly onFact?: (fact: StoreFact) => void;
}

/**
 * The store of one process. Every promise of the port holds because each call runs to its end without a pause: what a
 * database needs a host lock for, one thread has for nothing. Fences start at the time of the start, in milliseconds
 * × 1000, and are counted over all hosts, so that a forgotten host's fences grow on all the same.
 *
 * Cost: O(batch · log n) a call, n the waiters of the call's host; other hosts cost nothing. Memory: nothing for a host
 * that has been without users for `idleMs`; a session's record goes at its deadline.
 */
export class MemoryStore implements Port.SlotStore {
  readonly heartbeatMs: number | undefined;
  readonly #clock: Clock;
  readonly #names: SlotNames;
  readonly #books: HostBooks;
  readonly #records = new SessionRecords();
  readonly #leases = new Map<string, Lease>();
  readonly #listeners = new Set<(freed: Port.FreedEvent) => void>();
  readonly #facts: FactLog | undefined;

  constructor({ clock, newToken, waiterTtlMs, idleMs, image, onFact }: MemoryStoreOptions) {
    this.#clock = clock;
    this.#names = { newToken, fence: Math.max(Math.floor(clock.now()) * 1000, image?.fence ?? 0) };
    this.heartbeatMs = waiterTtlMs === undefined ? undefined : waiterTtlMs / 3;
    this.#books = new HostBooks(waiterTtlMs ?? Number.POSITIVE_INFINITY, idleMs ?? 90_000, (lease) => {
      this.#leases.delete(lease.slotToken);
      this.#records.leaseEnded(lease);
      this.#tell(lease.host, lease.account.bucket);
    });
    this.#facts = onFact === undefined ? undefined : new FactLog(onFact);
    if (image === undefined) return;
    for (const lease of restoreImage(image, this.#books, this.#records, clock.now())) {
      this.#leases.set(lease.slotToken, lease);
    }
  }

  /** The whole store, as facts. What `onFact` was told before need not be kept any longer. */
  facts(): StoreFact[] {
    this.#facts?.forget();
    return factsOf(this.#books.all(), this.#records, this.#names.fence, this.#clock.now());
  }

  async checkThrottle({ host, policy }: Port.ThrottleQuery): Promise<Port.ThrottleState> {
    const now = this.#clock.now();
    const book = this.#books.find(host, now);
    if (book === undefined) return { breaker: { phase: "closed" }, capacity: undefined };
    return { breaker: book.breaker.view(now, policy.breaker), capacity: book.capacity };
  }

  async register(batch: Port.WaiterBatch): Promise<Port.BatchReply> {
    return this.#decide(batch, false);
  }

  async tryAcquire(batch: Port.WaiterBatch): Promise<Port.BatchReply> {
    return this.#decide(batch, true);
  }

  async withdraw(batch: Port.WithdrawBatch): Promise<void> {
    const now = this.#clock.now();
    const book = this.#books.open(batch.host, batch.policy, now);
    for (const ended of batch.sessions) this.#end(book, ended, batch.instance, now);
  }

  async release(request: Port.ReleaseRequest): Promise<Port.ReleaseReply> {
    const now = this.#clock.now();
    const held = this.#held(request.slotToken, now);
    if (request.status !== undefined) this.#observe(request, request.status, held, now);
    if (held === undefined) return { isReleased: false };
    const { lease, book } = held;
    if (request.uncollectedBy === undefined) this.#setEnd(book, lease, request, now);
    else if (lease.isShared || lease.instance !== request.uncollectedBy) return { isReleased: false };
    else {
      this.#records.forget(lease.session);
      lease.endsAt = now;
      this.#facts?.undone(lease);
    }
    const endsInMs = lease.endsAt - now;
    if (endsInMs <= 0) book.endLease(lease, now);
    return { isReleased: true, host: lease.host, bucket: lease.account.bucket, endsInMs };
  }

  async renew({ slotToken }: { readonly slotToken: string }): Promise<Port.RenewReply | undefined> {
    const now = this.#clock.now();
    const held = this.#held(slotToken, now);
    if (held === undefined) return undefined;
    const { lease, book } = held;
    const { leaseMs, maxHoldMs } = book.policy;
    lease.endsAt = Math.max(lease.endsAt, Math.min(now + leaseMs, lease.grantedAt + maxHoldMs));
    book.leases.update(lease);
    this.#facts?.renewed(lease);
    return { leaseMs: lease.endsAt - now };
  }

  async report({ host, policy, status }: Port.StatusReport): Promise<Port.BreakerView> {
    const now = this.#clock.now();
    const book = this.#books.open(host, policy, now);
    if (book.breaker.report(status, now, policy.breaker, false)) this.#facts?.breaker(book);
    return book.breaker.view(now, policy.breaker);
  }

  async cleanup({ resetSmoothing }: Port.CleanupRequest): Promise<Port.CleanupReply> {
    const now = this.#clock.now();
    const before = this.#leases.size;
    const waiters = this.#books.settleAll(now);
    let cooldowns = 0;
    for (const book of this.#books.all()) {
      cooldowns += book.dropCooldowns(now);
      if (resetSmoothing !== true) continue;
      book.lastEndAt = Number.NEGATIVE_INFINITY;
      this.#facts?.unspaced(book);
    }
    this.#books.prune(now);
    const sessions = this.#records.prune(now);
    return { slots: before - this.#leases.size, cooldowns, waiters, sessions, failures: [] };
  }

  async snapshot(): Promise<Port.StoreSnapshot> {
    const now = this.#clock.now();
    return { hosts: Array.from(this.#books.all(), (book) => snapshotOf(book, now)), sessions: this.#records.size };
  }

  async operate(action: Port.OperatorAction): Promise<boolean> {
    const now = this.#clock.now();
    if (action.kind === "revoke") return this.#revoke(action.slot, now);
    const book = this.#books.open(action.host, action.policy, now);
    if (action.kind === "limits") {
      book.setLive(action.limits);
      this.#facts?.limits(book);
    } else {
      if (action.isOpen) book.breaker.open(0, now);
      else book.breaker.close();
      this.#facts?.breaker(book);
    }
    this.#tell(book.host, undefined);
    return true;
  }

  onFreed(listener: (freed: Port.FreedEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #decide(batch: Port.WaiterBatch, mayGrant: boolean): Port.BatchReply {
    const now = this.#clock.now();
    this.#records.prune(now);
    const book = this.#books.open(batch.host, batch.policy, now);
    const context = { records: this.#records, leases: this.#leases, names: this.#names, now, facts: this.#facts };
    return new BatchDecision(book, batch, context).decide(mayGrant);
  }

  #end(
    book: HostBook,
    { session, end, ttlMs }: Port.WithdrawBatch["sessions"][number],
    instance: string,
    now: number,
  ): void {
    const found = this.#records.find(session, now);
    if (typeof found === "string") return;
    const waiter = book.pool.get(session);
    const isElsewhere =
      found === undefined ? (waiter?.instance ?? instance) !== instance : found.isShared || found.instance !== instance;
    // Only the client's own word ends a session that another instance has meanwhile.
    if (isElsewhere && end !== "canceled") return;
    if (waiter !== undefined) book.removeWaiter(waiter);
    this.#records.end(session, end, now + ttlMs);
    this.#facts?.ended(session, end, now + ttlMs);
    // In its own host's book, whatever host the caller believes it to be at.
    const held = found === undefined ? undefined : this.#held(found.slotToken, now);
    held?.book.endLease(held.lease, now);
  }

  /** The lease a token still owns: not released, not run out. */
  #held(slotToken: string, now: number): { lease: Lease; book: HostBook } | undefined {
    const lease = this.#leases.get(slotToken);
    const book = lease === undefined ? undefined : this.#books.find(lease.host, now);
    if (lease === undefined || book === undefined || lease.isOver || lease.isReleased) return undefined;
    return { lease, book };
  }

  /** max(hit + shortest hold, last end + spacing, now), at most one lease from now. */
  #setEnd(book: HostBook, lease: Lease, { hitAgoMs, policy }: Port.ReleaseRequest, now: number): void {
    if (policy !== undefined) book.use(policy);
    const { minHoldMs, smoothMs, leaseMs, cooldownMs } = book.policy;
    const heldUntil = hitAgoMs === undefined ? now : now - hitAgoMs + minHoldMs;
    const spacedUntil = smoothMs > 0 ? book.lastEndAt + smoothMs : now;
    lease.endsAt = Math.min(Math.max(heldUntil, spacedUntil, now), now + leaseMs);
    lease.isReleased = true;
    book.leases.update(lease);
    book.lastEndAt = Math.max(book.lastEndAt, lease.endsAt);
    this.#facts?.released(lease);
    const { bucket } = lease.account;
    if (cooldownMs <= 0 || bucket === SHARED_BUCKET) return;
    const until = book.startCooldown(bucket, lease.endsAt + cooldownMs);
    this.#facts?.cooled(book, bucket, until);
  }

  #revoke(slot: number, now: number): boolean {
    const lease = [...this.#leases.values()].find(({ fence }) => fence === slot);
    const held = lease === undefined ? undefined : this.#held(lease.slotToken, now);
    if (held === undefined) return false;
    held.book.endLease(held.lease, now);
    this.#facts?.revoked(held.lease);
    return true;
  }

  /** A status is news of the upstream even when the slot it came with is lost. */
  #observe(
    { host, policy }: Port.ReleaseRequest,
    status: number,
    held: { lease: Lease; book: HostBook } | undefined,
    now: number,
  ): void {
    const book =
      held?.book ?? (host !== undefined && policy !== undefined ? this.#books.open(host, policy, now) : undefined);
    if (book?.breaker.report(status, now, book.policy.breaker, held?.lease.isProbe ?? false) === true)
      this.#facts?.breaker(book);
  }

  #tell(host: string, bucket: string | undefined): void {
    for (const listener of this.#listeners) listener({ host, bucket, reservedFor: undefined });
  }
}
