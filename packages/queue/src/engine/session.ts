import type { BlockedBy, SessionClaims } from "@slotkeeper/protocol";
import type { CapacityMismatchError } from "slotkeeper";
import type { Due } from "../agenda.ts";
import type { GrantedSlot } from "../store/slot-store.ts";
import type { BucketQueue } from "./bucket-queue.ts";
import type { FirstNews } from "./first-news.ts";
import type { HostQueue } from "./host-queue.ts";
import type { Poll } from "./poll.ts";

/**
 * A session's life. Every arrow is one function of `Sessions`, and a session that has ended never moves again.
 *
 * | from              | event                                                   | to                |
 * |-------------------|---------------------------------------------------------|-------------------|
 * | –                 | first call, or a poll with a token of another instance  | pending           |
 * | pending           | the store granted and the client is there to fetch      | granted, unfetched |
 * | granted, unfetched | a poll is open or comes within `collectMs`              | granted, fetched  |
 * | granted, unfetched | `collectMs` passed: the slot goes to the next           | pending           |
 * | pending           | breaker open / deadline or idle / cancel                | throttled / timeout / canceled |
 * | pending           | the named semaphore has another capacity                | canceled, and forgotten: its first call fails |
 * | granted           | cancel while it is still kept                           | canceled          |
 */
export type SessionState =
  | { readonly kind: "pending" }
  | {
      readonly kind: "granted";
      readonly slot: GrantedSlot;
      readonly grantedAt: number;
      /** By this instance's clock, and never later than by the store's. */
      readonly leaseUntil: number;
      readonly isFetched: boolean;
    }
  | { readonly kind: "throttled"; readonly code: number; readonly retryAt: number }
  | { readonly kind: "timeout"; readonly reason: string }
  | { readonly kind: "canceled" };

/**
 * Where a pending session stands.
 *   fresh      not known to the store yet, or not any more; in the next batch
 *   trying     in the batch the store is deciding now
 *   inside     has a place in the pool
 *   outside    the pool was full
 *   returning  its uncollected slot is on the way back; until the store has it, asking again could grant that very slot
 */
export type Place = "fresh" | "trying" | "inside" | "outside" | "returning";

export const PENDING: SessionState = { kind: "pending" };
const NO_POLLS: readonly Poll[] = [];

export class Session implements Due {
  readonly claims: SessionClaims;
  readonly host: HostQueue;
  /** Another object after a grant that was not collected: the bucket may have been forgotten meanwhile. */
  bucket: BucketQueue;
  readonly openMs: number;
  readonly requestKey: string | undefined;
  readonly #whenDue: (session: Session) => void;
  state: SessionState = PENDING;
  place: Place = "fresh";
  /** Came by token: the store may know more of it, and is asked before anything here decides about it. */
  isAdopted: boolean;
  /** The store has answered about it, or failed to: before that nobody knows whether the host takes callers at all. */
  isHeard = false;
  /** First calls that wait for that. */
  news: FirstNews | undefined;
  /** Why it was not let in: what its first calls fail with. */
  refusal: CapacityMismatchError | undefined;
  /** The store may know of it: it has a place there, or an answer was lost. Otherwise its end need not be told. */
  mayBeStored: boolean;
  /** Holds a place in the store's pool. */
  isPooled = false;
  /** Its client is there, or was within `collectMs`. */
  isAwake = true;
  /** Was offered a place from outside: if it is taken, another may be free. */
  isOffered = false;
  blockedBy: BlockedBy | undefined;
  lastAnswerAt: number;
  /** Held calls. One, mostly: an array that is replaced is smaller than any collection that changes. */
  polls: readonly Poll[] = NO_POLLS;
  dueAt = 0;
  agendaIndex = -1;
  readyIndex = -1;
  outsideIndex = -1;

  constructor(init: SessionInit, whenDue: (session: Session) => void) {
    this.claims = init.claims;
    this.host = init.host;
    this.bucket = init.bucket;
    this.openMs = init.openMs;
    this.requestKey = init.requestKey;
    this.isAdopted = init.isAdopted;
    this.mayBeStored = init.isAdopted;
    this.lastAnswerAt = init.now;
    this.#whenDue = whenDue;
  }

  get isPending(): boolean {
    return this.state.kind === "pending";
  }

  addPoll(poll: Poll): void {
    this.polls = this.polls.length === 0 ? [poll] : [...this.polls, poll];
  }

  removePoll(poll: Poll): void {
    this.polls = this.polls.length === 1 ? NO_POLLS : this.polls.filter((other) => other !== poll);
  }

  onDue(): void {
    this.#whenDue(this);
  }
}

export interface SessionInit {
  readonly claims: SessionClaims;
  readonly host: HostQueue;
  readonly bucket: BucketQueue;
  readonly openMs: number;
  readonly requestKey: string | undefined;
  readonly isAdopted: boolean;
  readonly now: number;
}
