import type { AccountView } from "../order/contract.ts";
import { levelIn } from "../order/transitions.ts";
import { phaseFor } from "./breaker.ts";
import type { FactLog } from "./fact-log.ts";
import { GrantRound, type Standing, viewOf } from "./grant-round.ts";
import type { HostBook } from "./host-book.ts";
import type { Lease } from "./lease.ts";
import type { SessionRecords } from "./session-records.ts";
import type { BatchReply, Verdict, Waiter, WaiterBatch } from "./slot-store.ts";

/** What a decision needs of the store beside the host's book. */
export interface DecisionContext {
  readonly records: SessionRecords;
  readonly now: number;
  readonly facts: FactLog | undefined;
  /** By token. */
  readonly leases: Map<string, Lease>;
  readonly names: SlotNames;
}

/** Where the names of slots come from: tokens from outside, fences by counting. */
export interface SlotNames {
  readonly newToken: () => string;
  /** The last one given. */
  fence: number;
}

/** One batch of one host: answer what is known, admit to the pool, and, for `tryAcquire`, hand out the free slots. */
export class BatchDecision {
  readonly #book: HostBook;
  readonly #batch: WaiterBatch;
  readonly #context: DecisionContext;
  readonly #verdicts: Verdict[] = [];
  readonly #displaced: string[] = [];

  constructor(book: HostBook, batch: WaiterBatch, context: DecisionContext) {
    this.#book = book;
    this.#batch = batch;
    this.#context = context;
  }

  decide(mayGrant: boolean): BatchReply {
    const standing = this.#admitAll(mayGrant);
    const grant = (waiter: Waiter, isProbe: boolean) => this.#grant(waiter, isProbe);
    new GrantRound(this.#book, this.#context.now, this.#verdicts, grant).run(standing);
    return this.#reply();
  }

  #admitAll(mayGrant: boolean): Standing[] {
    const standing: Standing[] = [];
    this.#batch.waiters.forEach((waiter, at) => {
      const verdict = this.#known(waiter) ?? this.#admit(waiter);
      if (verdict !== undefined) this.#verdicts[at] = verdict;
      else if (mayGrant && waiter.isGrantable) standing.push({ waiter, at });
      else this.#verdicts[at] = { status: "WAIT", blockedBy: undefined };
    });
    // A later newcomer of the same batch may have taken an earlier one's place.
    return standing.filter(({ waiter, at }) => {
      if (this.#book.pool.get(waiter.session) !== undefined) return true;
      this.#verdicts[at] = { status: "QUEUE_FULL" };
      return false;
    });
  }

  /** A session that was granted or has ended gets the same answer again. */
  #known({ session, ttlMs }: Waiter): Verdict | undefined {
    const found = this.#context.records.find(session, this.#context.now);
    if (found === undefined) return undefined;
    this.#context.records.keep(session, this.#context.now + ttlMs);
    if (typeof found === "string") return { status: "ENDED", end: found };
    // Somebody may have been told of it already: that nobody fetched this answer is no reason to take it back.
    found.isShared = true;
    return this.#acquired(found);
  }

  /** Undefined: it is in the pool. */
  #admit(waiter: Waiter): Verdict | undefined {
    const { pool, breaker, policy } = this.#book;
    const { now } = this.#context;
    const view = breaker.view(now, policy.breaker);
    if (view.phase === "open" && phaseFor(view, waiter.openMs) === "open") {
      return { status: "THROTTLED", code: view.code, retryInMs: waiter.openMs - view.openForMs };
    }
    const pooled = pool.get(waiter.session);
    if (pooled !== undefined) {
      pool.refresh(pooled, this.#batch.instance, now);
      return undefined;
    }
    if (this.#batch.isSemaphore && !this.#book.joinCapacity(waiter.limit)) {
      return { status: "CAPACITY_MISMATCH", capacity: this.#book.policy.slots };
    }
    const { isAdmitted, displaces } = pool.admits(waiter.bucket, policy);
    if (!isAdmitted) return { status: "QUEUE_FULL" };
    if (displaces !== undefined) {
      this.#displaced.push(displaces.session);
      this.#book.removeWaiter(displaces);
    }
    const { session, bucket, weight, arrivedAt } = waiter;
    this.#book.addWaiter(session, bucket, weight, arrivedAt, this.#batch.instance, now);
    return undefined;
  }

  #grant({ session, bucket, weight, ttlMs }: Waiter, isProbe: boolean): Verdict {
    const { now, names } = this.#context;
    const { leaseMs, maxHoldMs } = this.#book.policy;
    const account = this.#book.startHold(bucket, weight);
    const lease: Lease = {
      slotToken: names.newToken(),
      fence: ++names.fence,
      session,
      host: this.#book.host,
      account,
      grantedAt: now,
      isProbe,
      instance: this.#batch.instance,
      isShared: false,
      endsAt: now + Math.min(leaseMs, maxHoldMs),
      isReleased: false,
      isOver: false,
      leaseIndex: -1,
    };
    this.#context.leases.set(lease.slotToken, lease);
    this.#book.addLease(lease);
    // Hold first, then leave the pool: in between neither the bucket nor a semaphore must look idle and be forgotten.
    const pooled = this.#book.pool.get(session);
    if (pooled !== undefined) this.#book.removeWaiter(pooled);
    this.#context.records.grant(session, lease, now + ttlMs);
    this.#context.facts?.granted(this.#book, lease, now + ttlMs);
    return this.#acquired(lease);
  }

  #acquired({ slotToken, fence, endsAt }: Lease): Verdict {
    return { status: "ACQUIRED", slot: { slotToken, fence, leaseMs: endsAt - this.#context.now } };
  }

  #reply(): BatchReply {
    const book = this.#book;
    const { now } = this.#context;
    const accounts = new Map<string, AccountView>();
    for (const { bucket, weight } of this.#batch.waiters) {
      if (!accounts.has(bucket)) accounts.set(bucket, viewOf(book, bucket, weight, now));
    }
    const next = book.leases.peek();
    return {
      verdicts: this.#verdicts,
      displaced: this.#displaced,
      accounts: [...accounts.values()],
      level: levelIn(book.ledger),
      free: book.free,
      freeInMs: next === undefined ? undefined : next.endsAt - now,
      breaker: book.breaker.view(now, book.policy.breaker),
    };
  }
}
