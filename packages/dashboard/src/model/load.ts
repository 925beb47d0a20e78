import type { HostRow } from "./fleet.ts";

/** How hard a host is asked for, from nothing to far more than it has. */
export type Load = "idle" | "busy" | "full" | "queueing" | "crowded";

export const LOADS: readonly Load[] = ["idle", "busy", "full", "queueing", "crowded"];

type Row = Pick<HostRow, "limit" | "inFlight" | "pending" | "waiting" | "isHot">;

/** A queue of this many times the slots is a crowd, whether or not the weighted scheduler is on. */
const CROWD = 4;

export function loadOf(row: Row): Load {
  const { limit = 0, inFlight, isHot } = row;
  const waiting = waitingAt(row);
  if (isHot || (limit > 0 && waiting >= CROWD * limit)) return "crowded";
  if (waiting > 0) return "queueing";
  if (limit > 0 && inFlight >= limit) return "full";
  return inFlight > 0 ? "busy" : "idle";
}

/** The instance knows its own sessions, in the pool and outside; the store knows the pool of the whole fleet. */
export function waitingAt({ pending, waiting }: Pick<HostRow, "pending" | "waiting">): number {
  return Math.max(pending, waiting);
}
