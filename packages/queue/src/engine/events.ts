import type { CancelResult } from "@slotkeeper/protocol";
import type { EndNote, Note } from "../inputs.ts";

/** What happened, for logs, metrics and history. No token is ever in it. */
export type QueueEvent =
  | {
      readonly type: "session-created";
      readonly host: string;
      readonly bucket: string;
      readonly session: string;
      readonly isAdopted: boolean;
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
      /** A slot was set aside for the session, and its client did not fetch it in time. */
      readonly type: "uncollected";
      readonly host: string;
      readonly bucket: string;
      readonly session: string;
    }
  /** The session is over at this instance: another has it now, or granted or ended it, and counted that. */
  | { readonly type: "moved"; readonly host: string; readonly bucket: string; readonly session: string }
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
  /** A release that found nothing: given back before, revoked, or run out. `host` where the caller named it. */
  | { readonly type: "late-release"; readonly host: string | undefined }
  /** Leases that ran out unreleased; the store may have found them at any host. */
  | { readonly type: "reclaimed"; readonly slots: number }
  /** A host's cycle, from being woken to having nothing more to ask. */
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
 * Names as the control plane's snapshot has them. Each session is counted once in `session_created`, by the instance of its
 * first call, and once at its end: in `granted` by the instance that granted its slot, else by the instance whose commit ended it. A
 * slot that its client gives back by `cancel` is counted in `canceled` too.
 */
export interface QueueCounts {
  session_created: number;
  granted: number;
  throttled: number;
  timeout: number;
  released: number;
  overloaded: number;
  canceled: number;
}

export function newCounts(): QueueCounts {
  return { session_created: 0, granted: 0, throttled: 0, timeout: 0, released: 0, overloaded: 0, canceled: 0 };
}

/** What a decision noted, as an event. */
export function eventOf(host: string, note: Note): QueueEvent {
  if (note.kind === "reclaimed") return { type: "reclaimed", slots: 1 };
  const { bucket } = note;
  if (note.kind === "denied")
    return { type: "probe-decision", host, bucket, isAllowed: false, reason: "ip_deny_window" };
  if (note.kind === "uncollected") return { type: "uncollected", host, bucket, session: note.session };
  return endEvent(host, note);
}

function endEvent(host: string, { session, bucket, end, reason, code, waitedMs }: EndNote): QueueEvent {
  if (end === "throttled") return { type: "throttled", host, bucket, session, code };
  if (end === "canceled") return { type: "canceled", host, bucket, session, result: "canceled" };
  return { type: "timeout", host, bucket, session, reason, waitedMs };
}

/** Counts what is counted; the other events are for the log alone. */
export function count(counts: QueueCounts, event: QueueEvent): void {
  if (event.type === "session-created") counts.session_created += event.isAdopted ? 0 : 1;
  else if (event.type in counts) counts[event.type as keyof QueueCounts]++;
}
