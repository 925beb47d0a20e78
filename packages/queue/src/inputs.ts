import type { LiveLimits, SessionEnd } from "./book/records.ts";

/** All requests to a host, as plain data: after a conflict the decision is made again from the same inputs. */
export type Input =
  /** A session joins the host. If another instance has it, it moves to this one, with its place or slot. */
  | ({
      readonly kind: "arrive";
      /** The capacity that a new user of a named semaphore asks for. Undefined: accepts the one in force. */
      readonly limit: number | undefined;
      /** The session was admitted before, so it is never refused. If no capacity is set, it sets its own. */
      readonly isReturning?: boolean;
      /** A time after the arrival at which the session had not ended. */
      readonly pendingAt?: number | undefined;
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
      /** See `arrive`. */
      readonly pendingAt?: number | undefined;
      /** When the client called, or the session timed out: the commit may come much later. */
      readonly at: number;
      /** This instance has not sent a slot to the client of the session. */
      readonly isUndelivered: boolean;
    }
  /** Takes back a slot of this instance that its client never fetched. The session returns to its place. */
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
  /** The slot is named by its fence: only the owner of a slot knows its token. */
  | { readonly kind: "revoke"; readonly fence: number }
  /** A changed configuration restarts the spacing of releases. */
  | { readonly kind: "unspace" }
  /** An instance of the fleet is gone. */
  | { readonly kind: "dead"; readonly instance: string }
  /** The host was not used for a while and may be forgotten. */
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

/** The answer to an input. The state of a session is read from the book instead (`standing.ts`). */
export type Outcome =
  | { readonly kind: "done" }
  /** For an arrival: the session was already in the book. */
  | Known
  /** A new session was refused, because the breaker is open for it. */
  | { readonly kind: "throttled"; readonly code: number; readonly retryAt: number }
  | { readonly kind: "mismatch"; readonly capacity: number }
  | { readonly kind: "released"; readonly bucket: string; readonly endsAt: number; readonly heldMs: number }
  | { readonly kind: "renewed"; readonly endsAt: number }
  /** The slot does not exist or has ended, the session has ended, or this instance may not end it. */
  | { readonly kind: "missing" };

export interface Known {
  /** The session waits, or has a slot that its client may know, or has ended. */
  readonly kind: "waiting" | "held" | "ended";
  /** The book has the session from this same arrival: a poll with its token arrived before the first call. */
  readonly isFirst: boolean;
  /** This instance granted the slot: while the arrival was on its way, or before. */
  readonly isOwnGrant?: boolean;
}

/** Events of a decision for the log, the metrics and the history. */
export type Note =
  | { readonly kind: "reclaimed"; readonly bucket: string; readonly fence: number }
  | { readonly kind: "uncollected"; readonly session: string; readonly bucket: string }
  /** The bucket was passed over for its limit or cooldown. */
  | { readonly kind: "refused"; readonly bucket: string }
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
