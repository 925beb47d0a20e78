import type { Costs, Demand, DemandDifference } from "@slotkeeper/protocol";
import type { LiveLimits } from "./book/records.ts";

/** All requests to a host, as plain data: after a conflict the decision is made again from the same inputs. */
export type Input =
  /**
   * A session joins the host. If another instance has it, it moves to this one, with its place or slot. After its
   * deadline it joins no more: the input only finds a slot that the session still has.
   */
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
    }
  /**
   * Takes back a lease that this instance has made and not delivered. The session returns to its place; after its
   * deadline it ends.
   */
  | ({ readonly kind: "return"; readonly fence: number; readonly awayAt: number } & Joining)
  | {
      readonly kind: "release";
      readonly slotToken: string;
      readonly hitAt: number | undefined;
      readonly status: number | undefined;
      /** What it really cost, by the name of the budget. */
      readonly used?: Costs | undefined;
    }
  | { readonly kind: "renew"; readonly slotToken: string }
  | { readonly kind: "report"; readonly status: number }
  | { readonly kind: "limits"; readonly limits: LiveLimits | undefined }
  | { readonly kind: "breaker"; readonly isOpen: boolean }
  /** Nothing new is granted until the host goes on. Holders keep their slots. */
  | { readonly kind: "pause"; readonly isPaused: boolean }
  /** The slot is named by its fence: only the owner of a slot knows its token. */
  | { readonly kind: "revoke"; readonly fence: number }
  /** A changed configuration restarts the spacing of releases. */
  | { readonly kind: "unspace" }
  /** An instance of the fleet is gone. */
  | { readonly kind: "dead"; readonly instance: string }
  /** The host was not used for a while and may be forgotten. */
  | { readonly kind: "forget" };

/**
 * An action of an operator. `hostname`, if known, selects the host's own limits. `limits` replaces all limits of the
 * operator: fields that are missing return to the configuration, and without it all of them do.
 */
export type Operation = { readonly host: string; readonly hostname?: string | undefined } & Extract<
  Input,
  { readonly kind: "limits" | "breaker" | "pause" | "revoke" }
>;

/** A session as it joins a host. */
export interface Joining {
  readonly session: string;
  readonly bucket: string;
  readonly weight: number;
  readonly arrivedAt: number;
  readonly deadlineAt: number;
  readonly openMs: number;
  /** What it asks for. */
  readonly demand?: Demand | undefined;
}

/** The answer to an input. The state of a session is read from the book instead (`standing.ts`). */
export type Outcome =
  | { readonly kind: "done" }
  /** For an arrival: the session has ended, and the book no longer has its end (END3). */
  | { readonly kind: "forgotten" }
  | { readonly kind: "mismatch"; readonly capacity: number }
  /** The limits in the book can never allow the session. It has not begun. */
  | ({ readonly kind: "impossible" } & Impossible)
  /** The session exists, with other demands. */
  | ({ readonly kind: "other-demands" } & DemandDifference)
  | {
      readonly kind: "released";
      readonly bucket: string;
      readonly endsAt: number;
      readonly heldMs: number;
      /** The names in `used` that were ignored. Undefined: there was no `used`. */
      readonly ignored: readonly string[] | undefined;
    }
  | { readonly kind: "renewed"; readonly endsAt: number }
  /** The slot does not exist or has ended, the session has ended, or this instance may not end it. */
  | { readonly kind: "missing" };

/** Why a session can never have what it asks for. */
export interface Impossible {
  /** The field of the request. */
  readonly field: string;
  /** Undefined: the field is missing, and must be present. */
  readonly value: number | string | undefined;
  /** The largest value that the limits allow. Undefined: the field must be absent, or present. */
  readonly most: number | undefined;
  /** Which limit that is. */
  readonly limit: string;
  /** If the host does not have what the field names: what it has, in the order of the alphabet. */
  readonly known?: readonly string[];
}

/** Events of a decision for the counters, the log and the history. The instance whose commit was accepted reports them. */
export type Note =
  /** The book did not know the session. */
  | { readonly kind: "begun"; readonly session: string; readonly bucket: string }
  | {
      readonly kind: "granted";
      readonly session: string;
      readonly bucket: string;
      readonly fence: number;
      readonly waitedMs: number;
    }
  /** A lease that no client got was taken back. */
  | { readonly kind: "returned"; readonly session: string; readonly bucket: string; readonly fence: number }
  /** An offer lapsed, or its client is away. */
  | { readonly kind: "uncollected"; readonly session: string; readonly bucket: string }
  | { readonly kind: "reclaimed"; readonly bucket: string; readonly fence: number }
  /** The bucket was passed over for its limit or cooldown. */
  | { readonly kind: "refused"; readonly bucket: string }
  /** A grant found a limit in shadow mode short, such as `budget:tokens` or `key:tenant`. */
  | { readonly kind: "short"; readonly bucket: string; readonly limit: string }
  /** A grant was charged to the state that values of this key share, because the host keeps too many. */
  | { readonly kind: "shared"; readonly bucket: string; readonly key: string }
  /** A settlement exceeded the largest debt of a budget by this number of units. */
  | { readonly kind: "excess"; readonly bucket: string; readonly budget: string; readonly units: number }
  | EndNote;

/** The decision ended a session (`ends.ts`). */
export interface EndNote {
  readonly kind: "ended";
  readonly session: string;
  readonly bucket: string;
  readonly end: "timeout" | "canceled" | "throttled";
  /** Of a timeout. `impossible`: limits changed, and can never allow it. */
  readonly reason: "deadline" | "idle" | "impossible";
  /** With `throttled`. */
  readonly code: number;
  readonly waitedMs: number;
}
