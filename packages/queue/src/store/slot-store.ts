import type { BlockedBy } from "@slotkeeper/protocol";
import type { HostPolicy } from "../host-policy.ts";
import type { AccountView } from "../order/contract.ts";

/**
 * The port between the engine and the truth about slots. One conformance suite runs on every implementation.
 *
 * Promises of a store, each under any interleaving of calls from any number of instances:
 *   S1 at no moment are more than `slots` leases of a host alive, nor more than `slotsPerBucket` of a bucket
 *   S2 a lease has one owner: its token. What was released, revoked or has run out is nobody's, and stays so
 *   S3 fences of a host only grow
 *   S4 a session holds at most one lease, and once it has ended it is granted nothing; ends are kept to the
 *      latest deadline the session was presented with
 *   S5 a lease ends by the store's clock, whoever is alive
 *   S6 the pool never holds more waiters than its limits; an instance that falls silent leaves it
 *   S7 a batch is decided as a whole, in the host's order, each grant counted before the next
 *   S8 a call that fails may have happened; repeating it is safe
 * Every call concerns one host, and never waits for another's. No instant crosses the port, only durations: a store
 * reads its own clock, and an instance may be wrong about the time.
 */
export interface SlotStore {
  /**
   * How often waiters must be registered again to be believed alive; undefined where the store cannot outlive its
   * instances.
   */
  readonly heartbeatMs: number | undefined;
  /** How the breaker stands, for whoever has no session; and the capacity in force, where users fixed one. */
  checkThrottle(query: ThrottleQuery): Promise<ThrottleState>;
  /** Admits waiters to the pool without trying for a slot, or says that they live; tells what became of sessions. */
  register(batch: WaiterBatch): Promise<BatchReply>;
  /** Ends sessions: their place in the pool, and the lease of one that was granted meanwhile, are given back. */
  withdraw(batch: WithdrawBatch): Promise<void>;
  /** Admits and tries: the only call that grants. */
  tryAcquire(batch: WaiterBatch): Promise<BatchReply>;
  release(request: ReleaseRequest): Promise<ReleaseReply>;
  /** How long the lease lasts now; undefined once it is lost. */
  renew(request: { readonly slotToken: string }): Promise<RenewReply | undefined>;
  /** An upstream's answer, for the breaker. */
  report(report: StatusReport): Promise<BreakerView>;
  /** Takes away what time has ended: slots, cooldowns, waiters, sessions. Each step runs even if another failed. */
  cleanup(request: CleanupRequest): Promise<CleanupReply>;
  snapshot(): Promise<StoreSnapshot>;
  /** What an operator changed by hand; reaches every instance. */
  operate(action: OperatorAction): Promise<boolean>;
  /**
   * A hint that trying again is worth it. Returns how to stop listening. The engine counts a slot by the answer to its own
   * `release`, and by a hint that comes while `release` is being called, once: a store that pushes from elsewhere spares
   * it a futile try by not telling an instance of that instance's own releases.
   */
  onFreed(listener: (freed: FreedEvent) => void): () => void;
}

export interface ThrottleQuery {
  readonly host: string;
  readonly policy: HostPolicy;
}

export interface ThrottleState {
  readonly breaker: BreakerView;
  /** What the live users of a named semaphore fixed; undefined while there are none. */
  readonly capacity: number | undefined;
}

/** A session that waits. */
export interface Waiter {
  readonly session: string;
  readonly bucket: string;
  readonly weight: number;
  readonly arrivedAt: number;
  /** Until its deadline. */
  readonly ttlMs: number;
  /** Its own reading of how long the breaker stays open. */
  readonly openMs: number;
  /**
   * The capacity a newcomer to a named semaphore asks for. If the live users fixed another, it is refused; undefined
   * takes what is in force.
   */
  readonly limit?: number | undefined;
  /** False keeps the place without standing for a slot: its client is not there to fetch one. */
  readonly isGrantable: boolean;
}

export interface WaiterBatch {
  readonly host: string;
  readonly instance: string;
  readonly policy: HostPolicy;
  /** A named semaphore: the first live user fixes its slots, by `limit` or else by `policy.slots`. */
  readonly isSemaphore: boolean;
  readonly waiters: readonly Waiter[];
}

export interface GrantedSlot {
  readonly slotToken: string;
  readonly fence: number;
  readonly leaseMs: number;
}

/** How a session ended; `released` is a grant whose slot is over. */
export type SessionEnd = "timeout" | "canceled" | "throttled" | "released";

export type Verdict =
  | { readonly status: "ACQUIRED"; readonly slot: GrantedSlot }
  /** No slot for it now. Answer of `register` for a waiter that is in the pool, too. */
  | { readonly status: "WAIT"; readonly blockedBy: BlockedBy | undefined }
  /** The bucket is at its limit or cools down; `retryInMs`: when that ends by itself. */
  | { readonly status: "IP_TOO_MANY"; readonly blockedBy: "ip-limit" | "cooldown"; readonly retryInMs: number }
  | { readonly status: "THROTTLED"; readonly code: number; readonly retryInMs: number }
  /** No place in the pool of waiters. */
  | { readonly status: "QUEUE_FULL" }
  /** The live users of the named semaphore fixed another capacity. The store keeps nothing of the session. */
  | { readonly status: "CAPACITY_MISMATCH"; readonly capacity: number }
  | { readonly status: "ENDED"; readonly end: SessionEnd };

export interface BatchReply {
  /** One for each waiter, in the order of the batch. */
  readonly verdicts: readonly Verdict[];
  /** Sessions that lost their place to a newcomer of a smaller bucket. */
  readonly displaced: readonly string[];
  /** The accounts of the buckets in the batch. */
  readonly accounts: readonly AccountView[];
  /** Fair slots per weight, as `order.ts` defines it. */
  readonly level: number;
  /** Slots left free. */
  readonly free: number;
  /** When the next slot ends by itself. */
  readonly freeInMs: number | undefined;
  readonly breaker: BreakerView;
}

export interface WithdrawBatch {
  readonly host: string;
  readonly instance: string;
  readonly policy: HostPolicy;
  readonly sessions: readonly { readonly session: string; readonly end: SessionEnd; readonly ttlMs: number }[];
}

export interface ReleaseRequest {
  readonly slotToken: string;
  /** Where the caller knows it; a release must not depend on it. */
  readonly host: string | undefined;
  readonly policy: HostPolicy | undefined;
  /** How long ago the upstream was hit; undefined: it was not. */
  readonly hitAgoMs: number | undefined;
  readonly status: number | undefined;
  /** A grant that nobody fetched: the session returns to its place, unless another instance delivered it. */
  readonly uncollectedBy: string | undefined;
}

export type ReleaseReply =
  | { readonly isReleased: false }
  | { readonly isReleased: true; readonly host: string; readonly bucket: string; readonly endsInMs: number };

export interface RenewReply {
  readonly leaseMs: number;
}

export interface StatusReport {
  readonly host: string;
  readonly policy: HostPolicy;
  readonly status: number;
}

export type BreakerView =
  | { readonly phase: "closed" }
  /** Each session compares `openForMs` with its own window; past it the breaker is half open for that session. */
  | { readonly phase: "open"; readonly code: number; readonly openForMs: number };

export interface CleanupRequest {
  readonly waiterTtlMs: number;
  /** A changed configuration starts spacing releases afresh. */
  readonly resetSmoothing?: boolean;
}

export interface CleanupReply {
  readonly slots: number;
  readonly cooldowns: number;
  readonly waiters: number;
  readonly sessions: number;
  readonly failures: readonly unknown[];
}

export type OperatorAction =
  | {
      readonly kind: "limits";
      readonly host: string;
      readonly policy: HostPolicy;
      readonly limits: LiveLimits | undefined;
    }
  | { readonly kind: "breaker"; readonly host: string; readonly policy: HostPolicy; readonly isOpen: boolean }
  /** `slot` is the fence: tokens are secrets of their owners. */
  | { readonly kind: "revoke"; readonly slot: number };

export interface LiveLimits {
  readonly slots?: number;
  readonly slotsPerBucket?: number;
}

export interface FreedEvent {
  readonly host: string;
  /** Whose slot it was, where known: that bucket may be below its limit again. */
  readonly bucket: string | undefined;
  /** The slot is kept a moment for this session, which lives on the instance that is told. */
  readonly reservedFor: string | undefined;
}

/** For the person on call: no token in it. */
export interface StoreSnapshot {
  readonly hosts: readonly HostSnapshot[];
  readonly sessions: number;
}

export interface HostSnapshot {
  readonly host: string;
  readonly slots: number;
  readonly inFlight: number;
  readonly waiting: number;
  readonly progress: number;
  readonly breaker: BreakerView;
  readonly live: LiveLimits | undefined;
  readonly buckets: readonly (AccountView & { readonly waiting: number; readonly weight: number })[];
  readonly leases: readonly LeaseSnapshot[];
}

export interface LeaseSnapshot {
  readonly slot: number;
  readonly session: string;
  readonly bucket: string;
  readonly endsInMs: number;
  /** Given back, and running out the shortest hold or the spacing. */
  readonly isReleased: boolean;
  readonly isProbe: boolean;
}
