import type { Costs, Demand, LiveLimitField } from "@slotkeeper/protocol";
import type { Level, Refill } from "slotkeeper/parts";
import type { HostPolicy } from "../host-policy.ts";
import type { WeightedHead, WeightedLine } from "../order/weighted/numbers.ts";

/**
 * The state of a host as plain data: a head, and records by kind and key. Every store, the journal and the simulator
 * keep exactly this, and JSON carries it unchanged (`codec.ts`).
 * A record is never changed in place: a new one replaces it. An optional field may be set to undefined: records with
 * the same fields are faster, and JSON leaves the field out.
 * Instants are store time, in milliseconds.
 */

/**
 * A slot that a client holds. `isReleased`: the slot was released, and a minimum hold or spacing occupies it until
 * `endsAt`.
 */
export interface LeaseRecord {
  readonly kind: "lease";
  /** The slot token. */
  readonly key: string;
  /** Grows with every grant of the host. Operators use it to name the slot. */
  readonly fence: number;
  readonly session: string;
  readonly bucket: string;
  /**
   * The instance that sent the slot to the client, or is about to. It may take the slot back if its commit made the
   * lease and no call took it.
   */
  readonly instance: string;
  readonly grantedAt: number;
  readonly endsAt: number;
  readonly isReleased: boolean;
  /** The grant is a probe of a half-open breaker. */
  readonly isProbe: boolean;
  /** The deadline of the session: its end is kept until then. */
  readonly keepUntil: number;
  /** How many slots of the host it occupies. */
  readonly width: number;
  /** What it was charged to budgets, when, and for what. Absent: it asked for nothing special, and the host has no budgets. */
  readonly charge?: Charge | undefined;
}

/** What a grant takes besides its slots at the host and its bucket. */
export interface Charge {
  readonly at: number;
  /** Amounts that were charged to budgets, by the keys of their records. */
  readonly costs: Costs;
  /** What the request asked for, with the keys whose slots it occupies. A repeated request must ask for the same. */
  readonly asked?: Demand | undefined;
  /** Limits in shadow mode that the grant would have waited for, such as `budget:tokens` or `key:tenant`. Absent: none. */
  readonly short?: readonly string[] | undefined;
  /** What the order by a budget counts for it (`charged.ts`). Absent: nothing. */
  readonly counted?: number | undefined;
}

/** A slot that is set aside for a waiter whose poll is not open at the deciding instance. It has no token yet. */
export interface OfferRecord {
  readonly kind: "offer";
  /** The id of the session. Its waiter record stays in the book. */
  readonly key: string;
  readonly bucket: string;
  readonly instance: string;
  readonly offeredAt: number;
  readonly lapsesAt: number;
  readonly isProbe: boolean;
  readonly width: number;
  readonly charge?: Charge | undefined;
}

/** A pending session, of any instance. */
export interface WaiterRecord {
  readonly kind: "waiter";
  /** The id of the session. */
  readonly key: string;
  readonly instance: string;
  readonly bucket: string;
  readonly weight: number;
  readonly arrivedAt: number;
  readonly deadlineAt: number;
  /** How long the breaker stays open for this session. */
  readonly openMs: number;
  /** It has a place in the waiter pool. */
  readonly isInside: boolean;
  /** Since when its client has no poll open. Absent while a poll is open, or was open within `collectMs`. */
  readonly awayAt?: number | undefined;
  /** What it asks for. Absent: one slot, and nothing special. */
  readonly demand?: Demand | undefined;
}

/**
 * How a session ended, so that the session gets no second slot and a repeated poll gets the same answer.
 * `standing.ts` says how long it is kept.
 */
export interface EndingRecord {
  readonly kind: "ending";
  readonly key: string;
  readonly end: SessionEnd;
  /** The deadline of the session. */
  readonly keepUntil: number;
  /** When it ended, or when a repeated first call found the end. Absent in records of older versions. */
  readonly endedAt?: number | undefined;
  /** The instance whose commit ended the session. Absent: the session had a slot. */
  readonly instance?: string | undefined;
  /** With `throttled`: the status that opened the breaker, and when the session may try again. */
  readonly code?: number | undefined;
  readonly retryAt?: number | undefined;
}

/**
 * `released`: the session got a slot, and the slot has ended. `impossible`: limits changed, and no grant can ever satisfy it. `dropped` is no end: the instance of the session died, and
 * the session may join again. The record only shows that the session has begun.
 */
export type SessionEnd = "timeout" | "canceled" | "throttled" | "released" | "impossible" | "dropped";

/** A line's use of the host. */
export interface AccountRecord {
  readonly kind: "account";
  /** The line: the bucket, and its class if it is not the default (`line.ts`). */
  readonly key: string;
  readonly weight: number;
  /** Slot-milliseconds used up to `asOf`; from there on each slot it holds adds one per millisecond. */
  readonly usedMs: number;
  readonly asOf: number;
  /** When the line was last passed over for the limit or cooldown of its bucket, and that was reported. */
  readonly refusedAt?: number | undefined;
  readonly weighted?: WeightedLine | undefined;
  /** What the order by a budget has charged it (`charged.ts`). Absent: nothing, or another order. */
  readonly charged?: number | undefined;
}

/** The bucket gets no slot before `until`. */
export interface CooldownRecord {
  readonly kind: "cooldown";
  readonly key: string;
  readonly until: number;
}

/**
 * The instance let an offer lapse although one of its polls was recorded as open. It gets no offers until it commits or
 * sends a beat.
 */
export interface AbsenceRecord {
  readonly kind: "absence";
  /** The instance. */
  readonly key: string;
  readonly missedAt: number;
}

/**
 * What is missing from a budget (`level.ts` of the library), with the limits by which it refills. Absent: the budget is
 * full.
 */
export interface BudgetRecord extends Refill {
  readonly kind: "budget";
  /** The name of the budget, and of the value of a key if it belongs to one (`accounts.ts`). */
  readonly key: string;
  readonly level: Level;
}

/** The limits in force. One record per host, key "". */
export interface LimitsRecord {
  readonly kind: "limits";
  readonly key: "";
  /** The configuration of the instance that loaded its configuration last. */
  readonly policy: HostPolicy;
  readonly loadedAt: number;
  /** The name of the host that the configuration was read for. Absent: it was read without a name, from a hash. */
  readonly hostname?: string | undefined;
  readonly live?: LiveSettings | undefined;
}

/** What an operator has set for a host while the service runs. `isPaused`: nothing new is granted. */
export type LiveSettings = LiveLimits & { readonly isPaused?: true };

/** Limits of a host that an operator has set while the service runs. */
export type LiveLimits = { readonly [field in LiveLimitField]?: number };

/** One entry of a book. */
export type BookRecord =
  | LeaseRecord
  | OfferRecord
  | WaiterRecord
  | EndingRecord
  | AccountRecord
  | CooldownRecord
  | AbsenceRecord
  | BudgetRecord
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
  "ending",
  "account",
  "cooldown",
  "absence",
  "budget",
  "limits",
] as const satisfies readonly RecordKind[];

/** The part of a book that changes with nearly every decision. */
export interface Head {
  readonly hostname?: string | undefined;
  /**
   * Slots in force: `capacity`, otherwise the number of an operator, otherwise the configuration. Stores check grants
   * against it.
   */
  readonly slots: number;
  /** The last fence that was issued. */
  readonly fence: number;
  /** The latest `now` of any commit. */
  readonly now: number;
  /** The meter of `order.ts`: what a bucket of weight 1 would have used up to `meterAt` if it had always been active. */
  readonly progress: number;
  readonly meterAt: number;
  /** When the last released slot ended or will end. The spacing of the next release starts here. */
  readonly lastEndAt?: number | undefined;
  /** For a named semaphore: the capacity that its first current user asked for. */
  readonly capacity?: number | undefined;
  readonly breaker: BreakerState;
  /** The average wait of sessions that were granted or timed out, and since when no session has waited. */
  readonly avgWaitMs: number;
  readonly idleSince?: number | undefined;
  readonly weighted?: WeightedHead | undefined;
  /** Ends of sessions up to this time may be forgotten (`standing.ts`). Absent: none that is needed. */
  readonly forgottenAt?: number | undefined;
  /** The session that gets the next grant (FIRST1): it needs more slots than are free. */
  readonly first?: string | undefined;
  /** When all budgets are full again. Until then the host is not forgotten. Absent: they are full. */
  readonly fullAt?: number | undefined;
  /** With an order by a budget: the charge per weight of the line or class that got the last grant, before it. */
  readonly chargeLevel?: number | undefined;
  /** The use of each class (`classes.ts`). Absent: the host has no classes. */
  readonly classes?: ClassUses | undefined;
}

/** By the name of the class. */
export type ClassUses = { readonly [name: string]: ClassUse };

/** The use of a class up to `meterAt` of the head. */
export interface ClassUse {
  /** The weight that the numbers belong to. */
  readonly weight: number;
  /** Slot-milliseconds used. */
  readonly usedMs: number;
  /** The meter of its lines. */
  readonly progress: number;
  /** When it last held a slot or waited. */
  readonly activeAt: number;
  /** With an order by a budget: what it was charged, and the charge per weight of its line that got its last grant, before it. */
  readonly charged?: number | undefined;
  readonly chargeLevel?: number | undefined;
}

/** The state of the circuit breaker. The table of its states is in `breaker.ts`. */
export interface BreakerState {
  readonly openedAt?: number;
  readonly code: number;
  readonly windowStartAt?: number;
  readonly errors: number;
  readonly successes: number;
  readonly consecutive: number;
}

/** What one decision changed. `head: undefined`: the host is forgotten with all its records. */
export interface Changes {
  readonly head: Head | undefined;
  readonly puts: readonly BookRecord[];
  readonly dels: readonly RecordName[];
}

/** Identifies a record within a book. */
export type RecordName = readonly [kind: RecordKind, key: string];

/** A whole host. */
export interface BookImage {
  readonly head: Head;
  readonly records: readonly BookRecord[];
}
