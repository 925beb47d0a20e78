import { type WaitCause, waitCause } from "@slotkeeper/protocol";
import { nameOfBucket, seconds } from "../format.ts";
import { forecastWords } from "./forecast.ts";
import type { HostState, SessionState, SlotState } from "./host-watch.ts";
import { breakerLeft } from "./load.ts";

/** Why a session waits, as text for the person on call. The cells of the slots show who holds them. */
export interface Why extends WaitCause {
  readonly forecast: string;
}

interface Seen {
  readonly host: HostState;
  /** For a countdown that continues between two answers. */
  readonly sinceMs: number;
}

export function whyWaits(session: SessionState, { host, sinceMs }: Seen): Why {
  const shown = { bucket: nameOfBucket(session.bucket), breakerLeft: seconds(breakerLeft(host, 0, sinceMs)) };
  return { ...waitCause(session, host, shown), forecast: forecastWords(session, host) };
}

/** Whether the session waits for this slot in particular, because its own bucket or class holds it. */
export function isAwaited(slot: SlotState, session: SessionState | undefined): boolean {
  if (session?.isAwake !== true) return false;
  if (session.blockedBy === "class") return slot.class === session.class;
  return session.blockedBy === "ip-limit" && slot.bucket === session.bucket;
}
