import { duration } from "../format.ts";
import type { HostState, SessionState } from "./host-watch.ts";

/** A shorter pause says nothing about the rate of grants. */
const PAUSE_MS = 5_000;

/**
 * When the session gets its slot, as the service estimates it; `undefined` without an estimate, or if grants have
 * stopped since.
 */
export function forecastMs(session: SessionState, host: HostState): number | undefined {
  const { estimatedWaitMs, isAwake } = session;
  return isAwake && sinceLastGrantMs(session, host) === undefined ? estimatedWaitMs : undefined;
}

export function forecastWords(session: SessionState, host: HostState): string {
  const { estimatedWaitMs, isAwake } = session;
  if (!isAwake) return "None while its client is away.";
  if (estimatedWaitMs === undefined) return "None yet: too few waiting sessions have been granted a slot.";
  const since = sinceLastGrantMs(session, host);
  if (since !== undefined) return `None: no slot was granted here for ${duration(since)}.`;
  return `About ${duration(estimatedWaitMs)} until its turn, at the pace of recent grants.`;
}

/**
 * How long ago the last grant was, if that is longer than the whole estimated wait. The service estimates from the time
 * between past grants, so long holds make the estimate too short.
 */
function sinceLastGrantMs({ estimatedWaitMs }: SessionState, { slots }: HostState): number | undefined {
  const held = slots.flatMap(({ heldMs }) => heldMs ?? []);
  if (estimatedWaitMs === undefined || held.length === 0 || held.length < slots.length) return undefined;
  const since = Math.min(...held);
  return since > Math.max(PAUSE_MS, estimatedWaitMs) ? since : undefined;
}
