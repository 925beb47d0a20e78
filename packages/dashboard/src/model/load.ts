import type { HostRow } from "./fleet.ts";

/** The states of a host, from idle to the one that most needs a person. */
const LOADS = ["idle", "busy", "full", "queueing", "crowded", "breaker testing", "breaker open", "paused"] as const;

export type Load = (typeof LOADS)[number];

export type LoadRow = Pick<HostRow, "limit" | "inFlight" | "pending" | "waiting" | "isHot" | "isPaused" | "breaker">;

/** A queue of this many times the slots counts as crowded, with or without the weighted scheduler. */
const CROWD = 4;

/** A pause and an open breaker go first: such a host looks idle, because nothing reaches it. */
export function loadOf(row: LoadRow): Load {
  const { limit = 0, inFlight, isHot, isPaused, breaker } = row;
  if (isPaused) return "paused";
  if (breaker !== "closed") return breaker === "open" ? "breaker open" : "breaker testing";
  const waiting = waitingAt(row);
  if (isHot || (limit > 0 && waiting >= CROWD * limit)) return "crowded";
  if (waiting > 0) return "queueing";
  if (limit > 0 && inFlight >= limit) return "full";
  return inFlight > 0 ? "busy" : "idle";
}

/** Whether a person should look at the host: sessions wait, its breaker is not closed, or it is paused. */
export function isUrgent(row: LoadRow): boolean {
  return urgencyOf(row) >= LOADS.indexOf("queueing");
}

/** The worst state first; among equal ones the longest queue. */
export function urgencyOf(row: LoadRow): number {
  return LOADS.indexOf(loadOf(row)) + Math.min(0.99, waitingAt(row) / 1e6);
}

/** How long an open breaker still stays open, counted from the arrival of the row. */
export function breakerLeft(
  { breakerEndsInMs = 0 }: Pick<HostRow, "breakerEndsInMs">,
  seenAt: number,
  now: number,
): number {
  // The clock of the page ticks once a second, so it may be before the arrival of the row.
  return Math.max(0, breakerEndsInMs - Math.max(0, now - seenAt));
}

/**
 * The instance knows its own sessions, inside and outside the waiter pool. The store knows the pool of the whole fleet.
 */
export function waitingAt({ pending, waiting }: Pick<HostRow, "pending" | "waiting">): number {
  return Math.max(pending, waiting);
}
