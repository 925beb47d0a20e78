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
  if (session.blockedBy === "class") return "None: it depends on when its own class releases a slot.";
  if (estimatedWaitMs === undefined) return "None yet: too few waiting sessions have been granted a slot.";
  if (isShortOfBudget(session)) return `About ${duration(estimatedWaitMs)} until the budget has refilled.`;
  const since = sinceLastGrantMs(session, host);
  if (since !== undefined) return `None: no slot was granted here for ${duration(since)}.`;
  return `About ${duration(estimatedWaitMs)} until its turn, at the pace of recent grants.`;
}

/** Its wait depends on the refill, not on the pace of grants. */
function isShortOfBudget({ blockedBy }: SessionState): boolean {
  return blockedBy?.startsWith("budget:") === true;
}

/**
 * How long ago the last grant was, if that is longer than the whole estimated wait. The service estimates from the time
 * between past grants, so long holds make the estimate too short.
 */
function sinceLastGrantMs(session: SessionState, { slots }: HostState): number | undefined {
  const { estimatedWaitMs } = session;
  if (isShortOfBudget(session)) return undefined;
  const held = slots.flatMap(({ heldMs }) => heldMs ?? []);
  if (estimatedWaitMs === undefined || held.length === 0 || held.length < slots.length) return undefined;
  const since = Math.min(...held);
  return since > Math.max(PAUSE_MS, estimatedWaitMs) ? since : undefined;
}
