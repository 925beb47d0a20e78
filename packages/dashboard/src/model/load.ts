import type { HostRow } from "./fleet.ts";

/** How heavily a host is used, from not at all to far more than its slots. */
export type Load = "idle" | "busy" | "full" | "queueing" | "crowded";

export const LOADS: readonly Load[] = ["idle", "busy", "full", "queueing", "crowded"];

type Row = Pick<HostRow, "limit" | "inFlight" | "pending" | "waiting" | "isHot">;

/** A queue of this many times the slots counts as crowded, with or without the weighted scheduler. */
const CROWD = 4;

export function loadOf(row: Row): Load {
  const { limit = 0, inFlight, isHot } = row;
  const waiting = waitingAt(row);
  if (isHot || (limit > 0 && waiting >= CROWD * limit)) return "crowded";
  if (waiting > 0) return "queueing";
  if (limit > 0 && inFlight >= limit) return "full";
  return inFlight > 0 ? "busy" : "idle";
}

/**
 * The instance knows its own sessions, inside and outside the waiter pool. The store knows the pool of the whole fleet.
 */
export function waitingAt({ pending, waiting }: Pick<HostRow, "pending" | "waiting">): number {
  return Math.max(pending, waiting);
}
