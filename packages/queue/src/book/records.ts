import type { LiveLimitField } from "@slotkeeper/protocol";
import type { HostPolicy } from "../host-policy.ts";

/**
 * The state of a host as plain data: a head, and records by kind and key. Every store, the journal and the simulator keep
 * exactly this, and JSON carries it unchanged (`codec.ts`). A record is never changed in place: a new one replaces it. An
 * optional field may be spelled out as undefined: records of one shape are faster, and JSON leaves it out.
 * Instants are store time, in milliseconds.
 */

/** A slot in the hands of a client. `isReleased`: given back, and occupied until `endsAt` by a minimum hold or spacing. */
export interface LeaseRecord {
  readonly kind: "lease";
  /** The slot token. */
  readonly key: string;
  /** Only grows, per host; names the slot for operators. */
  readonly fence: number;
  readonly session: string;
  readonly bucket: string;
  /** The instance that answered the client, or is about to. Only it may take back a lease its client never fetched. */
  readonly instance: string;
  readonly grantedAt: number;
  readonly endsAt: number;
  readonly isReleased: boolean;
  /** Granted by a half-open breaker to find out whether the host has recovered. */
  readonly isProbe: boolean;
  /** How long the session's end is remembered: its deadline. */
  readonly keepUntil: number;
}

/** A slot set aside for a waiter whose poll is not open at the instance that decided. It has no token yet. */
export interface OfferRecord {
  readonly kind: "offer";
  /** The session. Its waiter record stays. */
  readonly key: string;
  readonly bucket: string;
  readonly instance: string;
  readonly offeredAt: number;
  readonly lapsesAt: number;
  readonly isProbe: boolean;
}

/** A pending session, of whichever instance. */
export interface WaiterRecord {
  readonly kind: "waiter";
  /** The session. */
  readonly key: string;
  readonly instance: string;
  readonly bucket: string;
  readonly weight: number;
  readonly arrivedAt: number;
  readonly deadlineAt: number;
  /** How long an open breaker counts as open for this session. */
  readonly openMs: number;
  /** It has a place in the waiter pool. */
  readonly isInside: boolean;
  /** Since when its client has no poll open; absent while it has, or has had within `collectMs`. */
  readonly awayAt?: number | undefined;
}

/** How a session ended. Kept until its deadline, so that it is never granted twice and a repeated poll gets the same end. */
export interface SessionRecord {
  readonly kind: "session";
  readonly key: string;
  readonly end: SessionEnd;
  /** The session's deadline. Its end stays in the book a little longer (`END_GRACE_MS`), for counting alone. */
  readonly keepUntil: number;
  /** The instance whose commit ended it, and that counted it; absent: it was counted before, with its grant. */
  readonly instance?: string;
  /** A repeated first call has a later deadline than the session had: `keepUntil` is that call's. */
  readonly isExtended?: boolean;
  /** With `throttled`: the status that opened the breaker, and when the session may try again. */
  readonly code?: number;
  readonly retryAt?: number;
}

/** `released`: the session was granted and its slot is over. */
export type SessionEnd = "timeout" | "canceled" | "throttled" | "released";

/** A bucket's use of the host, its deny window, and its numbers for the weighted scheduler. */
export interface AccountRecord {
  readonly kind: "account";
  /** The bucket. */
  readonly key: string;
  readonly weight: number;
  /** Slot-milliseconds used up to `asOf`; from there on each slot it holds adds one per millisecond. */
  readonly usedMs: number;
  readonly asOf: number;
  /** Not considered for a slot before this moment. */
  readonly denyUntil?: number | undefined;
  readonly denyReason?: "ip-limit" | "cooldown" | undefined;
  /** How often the bucket was considered in vain, and when that was last counted. */
  readonly waitCount?: number | undefined;
  readonly waitCountedAt?: number | undefined;
  readonly virtualTime?: number | undefined;
}

/** The bucket gets no slot before `until`. */
export interface CooldownRecord {
  readonly kind: "cooldown";
  readonly key: string;
  readonly until: number;
}

/** The instance let an offer lapse although a poll was recorded as open. It gets none until it commits or beats again. */
export interface AbsenceRecord {
  readonly kind: "absence";
  /** The instance. */
  readonly key: string;
  readonly missedAt: number;
}

/** The limits in force. One record per host, key "". */
export interface LimitsRecord {
  readonly kind: "limits";
  readonly key: "";
  /** As configured by the instance that loaded its configuration last. */
  readonly policy: HostPolicy;
  readonly loadedAt: number;
  /** What an operator set by hand. */
  readonly live?: LiveLimits;
}

/** Limits of a host that an operator has set while the service runs. */
export type LiveLimits = { readonly [field in LiveLimitField]?: number };

/** One entry of a book. */
export type BookRecord =
  | LeaseRecord
  | OfferRecord
  | WaiterRecord
  | SessionRecord
  | AccountRecord
  | CooldownRecord
  | AbsenceRecord
  | LimitsRecord;

/** What a record is about. */
export type RecordKind = BookRecord["kind"];
/** The record of one kind. */
export type RecordOf<K extends RecordKind> = Extract<BookRecord, { kind: K }>;

/** All kinds of records. */
export const RECORD_KINDS = [
  "lease",
  "offer",
  "waiter",
  "session",
  "account",
  "cooldown",
  "absence",
  "limits",
] as const satisfies readonly RecordKind[];

/** What changes with nearly every decision. */
export interface Head {
  readonly hostname?: string | undefined;
  /** Slots in force: `capacity`, else an operator's, else as configured. Stores check grants against it. */
  readonly slots: number;
  /** The last fence given out. */
  readonly fence: number;
  /** The latest `now` of any commit. */
  readonly now: number;
  /** The meter of `order.ts`: what a bucket of weight 1 that never slept would have used, up to `meterAt`. */
  readonly progress: number;
  readonly meterAt: number;
  /** When the last released slot ended or will end: the next release is spaced from it. */
  readonly lastEndAt?: number | undefined;
  /** Of a named semaphore: what its first live user asked for. */
  readonly capacity?: number | undefined;
  readonly breaker: BreakerState;
  /** Average wait of sessions that were granted or timed out, and since when no session has waited. */
  readonly avgWaitMs: number;
  readonly idleSince?: number | undefined;
  readonly isHot: boolean;
  /** When the weighted scheduler last handed out a slot, or considered buckets in vain. */
  readonly probedAt?: number | undefined;
  /** Virtual time of the last turn. */
  readonly turnAt?: number | undefined;
}

/** The circuit breaker. `breaker.ts` has its table of states. */
export interface BreakerState {
  readonly openedAt?: number;
  /** The longest window (W) any session has read it with since it opened. */
  readonly windowMs?: number;
  readonly code: number;
  readonly windowStartAt?: number;
  readonly errors: number;
  readonly successes: number;
  readonly consecutive: number;
}

/** What one decision changed. `head: undefined`: the host is forgotten, with every record. */
export interface Changes {
  readonly head: Head | undefined;
  readonly puts: readonly BookRecord[];
  readonly dels: readonly RecordName[];
}

/** What identifies a record within a book. */
export type RecordName = readonly [kind: RecordKind, key: string];

/** A whole host. */
export interface BookImage {
  readonly head: Head;
  readonly records: readonly BookRecord[];
}
