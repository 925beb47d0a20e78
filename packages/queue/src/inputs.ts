import type { LiveLimits, SessionEnd } from "./book/records.ts";

/** Everything that can be asked of a host. Plain data: a decision that lost its race is made again from the same inputs. */
export type Input =
  /** A session joins, or its client polled an instance that did not have it: it moves there, with what it has. */
  | ({
      readonly kind: "arrive";
      /** The capacity that a new user of a named semaphore asks for; undefined takes what is in force. */
      readonly limit: number | undefined;
      /** It was let in before: it is never refused, but where no capacity is fixed yet it fixes its own. */
      readonly isReturning?: boolean;
    } & Joining)
  /** The client of a session of this instance polls again, or has been away for `collectMs`. */
  | { readonly kind: "client"; readonly session: string; readonly awayAt: number | undefined }
  | {
      readonly kind: "end";
      readonly session: string;
      readonly bucket: string;
      readonly arrivedAt: number;
      readonly end: "timeout" | "canceled";
      readonly keepUntil: number;
    }
  /** A lease of this instance that its client never fetched. The session returns to its place. */
  | ({ readonly kind: "return"; readonly awayAt: number } & Joining)
  | {
      readonly kind: "release";
      readonly slotToken: string;
      readonly hitAt: number | undefined;
      readonly status: number | undefined;
    }
  | { readonly kind: "renew"; readonly slotToken: string }
  | { readonly kind: "report"; readonly status: number }
  | { readonly kind: "limits"; readonly limits: LiveLimits | undefined }
  | { readonly kind: "breaker"; readonly isOpen: boolean }
  /** By its fence: tokens are secrets of their owners. */
  | { readonly kind: "revoke"; readonly fence: number }
  /** A changed configuration starts spacing releases afresh. */
  | { readonly kind: "unspace" }
  /** An instance of the fleet is gone. */
  | { readonly kind: "dead"; readonly instance: string }
  /** The host was not used for a while: it may be forgotten. */
  | { readonly kind: "forget" };

/** A session as it joins a host. */
interface Joining {
  readonly session: string;
  readonly bucket: string;
  readonly weight: number;
  readonly arrivedAt: number;
  readonly deadlineAt: number;
  readonly openMs: number;
}

/** What became of an input. Sessions are read from the book instead (`standing.ts`). */
export type Outcome =
  | { readonly kind: "done" }
  /** Of an arrival: the session was in the book before. */
  | Known
  /** A new session that was not let in: the breaker is open for it. */
  | { readonly kind: "throttled"; readonly code: number; readonly retryAt: number }
  | { readonly kind: "mismatch"; readonly capacity: number }
  | { readonly kind: "released"; readonly bucket: string; readonly endsAt: number; readonly heldMs: number }
  | { readonly kind: "renewed"; readonly endsAt: number }
  /** No such slot, or it is over; a session that is not this instance's to end, or that had ended. */
  | { readonly kind: "missing" };

export interface Known {
  /** It waits; it has a slot already, and its client may know the slot; it had ended. */
  readonly kind: "waiting" | "held" | "ended";
  /** The book has it by the token of this very arrival: its client was quicker than its first call. */
  readonly isFirst: boolean;
  /** The instance had its slot already: it granted it while the arrival was on its way, or in an earlier life. */
  readonly isOwnGrant?: boolean;
}

/** What the log, the metrics and the history want to know. */
export type Note =
  | { readonly kind: "reclaimed" }
  | { readonly kind: "uncollected"; readonly session: string; readonly bucket: string }
  | { readonly kind: "denied"; readonly bucket: string }
  | EndNote;

/** The decision ended a session without a slot (`ends.ts`). */
export interface EndNote {
  readonly kind: "ended";
  readonly session: string;
  readonly bucket: string;
  readonly end: Exclude<SessionEnd, "released">;
  /** Of a timeout. */
  readonly reason: "deadline" | "idle";
  /** With `throttled`. */
  readonly code: number;
  readonly waitedMs: number;
}
