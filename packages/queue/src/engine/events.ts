import type { CancelResult } from "@slotkeeper/protocol";
import type { EndNote, Note } from "../inputs.ts";

/** What happened, for logs, metrics and history. Events contain no tokens. */
export type QueueEvent =
  | {
      readonly type: "session-created";
      readonly host: string;
      readonly bucket: string;
      readonly session: string;
    }
  | {
      readonly type: "granted";
      readonly host: string;
      readonly bucket: string;
      readonly session: string;
      readonly slot: number;
      readonly waitedMs: number;
    }
  | {
      /** No call took the slot, and it was taken back: it was granted, but not delivered. */
      readonly type: "returned";
      readonly host: string;
      readonly bucket: string;
      readonly session: string;
      readonly slot: number;
    }
  | {
      /** A slot was offered to the session, and its client did not fetch it in time: it was never granted. */
      readonly type: "uncollected";
      readonly host: string;
      readonly bucket: string;
      readonly session: string;
    }
  | {
      readonly type: "throttled";
      readonly host: string;
      readonly bucket: string;
      readonly session: string | undefined;
      readonly code: number;
    }
  | {
      readonly type: "timeout";
      readonly host: string;
      readonly bucket: string;
      readonly session: string;
      readonly reason: string;
      readonly waitedMs: number;
    }
  | {
      readonly type: "canceled";
      readonly host: string;
      readonly bucket: string;
      readonly session: string;
      readonly result: CancelResult;
    }
  | {
      readonly type: "released";
      readonly host: string;
      readonly bucket: string;
      readonly endsInMs: number;
      readonly heldMs: number | undefined;
    }
  /** A release without effect: the slot was already released, revoked, or had expired. `host` is set if the caller named it. */
  | { readonly type: "late-release"; readonly host: string | undefined }
  /** A lease that expired without a release. */
  | { readonly type: "reclaimed"; readonly host: string; readonly bucket: string; readonly fence: number }
  /** A slot was granted that would have waited for this limit, such as `budget:tokens` or `key:tenant`, or been refused, if it were enforced. */
  | { readonly type: "shadow-short"; readonly host: string; readonly bucket: string; readonly limit: string }
  /** A slot was granted whose value shares one state of this key with others, because the host keeps too many values. */
  | { readonly type: "shared-state"; readonly host: string; readonly bucket: string; readonly key: string }
  /** A request used more of a budget than its largest debt: these units are not charged. */
  | {
      readonly type: "budget-excess";
      readonly host: string;
      readonly bucket: string;
      readonly budget: string;
      readonly units: number;
    }
  /** One run of a host's cycle, from the wake-up until nothing is left to do. */
  | { readonly type: "cycle"; readonly host: string; readonly calls: number; readonly tookMs: number }
  | { readonly type: "overloaded"; readonly host: string; readonly bucket: string }
  | {
      readonly type: "probe-decision";
      readonly host: string;
      readonly bucket: string;
      readonly isAllowed: false;
      readonly reason: "ip_deny_window";
    }
  | {
      readonly type: "store-error";
      readonly host: string | undefined;
      readonly operation: string;
      readonly error: unknown;
    };

/**
 * Counters with the names of the control plane's snapshot. The instance whose commit was accepted counts the notes of its
 * decision, once. A session counts once as begun, and at most once as timeout, throttled or canceled. `granted` counts
 * leases; those that no client got are also in `returned`. If an instance dies between a commit and its count, that count
 * is lost.
 */
export interface QueueCounts {
  session_created: number;
  granted: number;
  returned: number;
  throttled: number;
  timeout: number;
  released: number;
  overloaded: number;
  canceled: number;
}

export function newCounts(): QueueCounts {
  return {
    session_created: 0,
    granted: 0,
    returned: 0,
    throttled: 0,
    timeout: 0,
    released: 0,
    overloaded: 0,
    canceled: 0,
  };
}

/** Turns a note of a decision into an event. */
export function eventOf(host: string, note: Note): QueueEvent {
  const { bucket } = note;
  switch (note.kind) {
    case "begun":
      return { type: "session-created", host, bucket, session: note.session };
    case "granted":
      return { type: "granted", host, bucket, session: note.session, slot: note.fence, waitedMs: note.waitedMs };
    case "returned":
      return { type: "returned", host, bucket, session: note.session, slot: note.fence };
    case "uncollected":
      return { type: "uncollected", host, bucket, session: note.session };
    case "reclaimed":
      return { type: "reclaimed", host, bucket, fence: note.fence };
    case "short":
      return { type: "shadow-short", host, bucket, limit: note.limit };
    case "shared":
      return { type: "shared-state", host, bucket, key: note.key };
    case "excess":
      return { type: "budget-excess", host, bucket, budget: note.budget, units: note.units };
    case "refused":
      return { type: "probe-decision", host, bucket, isAllowed: false, reason: "ip_deny_window" };
    case "ended":
      return endEvent(host, note);
  }
}

function endEvent(host: string, { session, bucket, end, reason, code, waitedMs }: EndNote): QueueEvent {
  if (end === "throttled") return { type: "throttled", host, bucket, session, code };
  if (end === "canceled") return { type: "canceled", host, bucket, session, result: "canceled" };
  return { type: "timeout", host, bucket, session, reason, waitedMs };
}

/** Updates the counters. Events without a counter are only for the log. */
export function count(counts: QueueCounts, event: QueueEvent): void {
  if (event.type === "session-created") counts.session_created++;
  else if (event.type in counts) counts[event.type as keyof QueueCounts]++;
}
