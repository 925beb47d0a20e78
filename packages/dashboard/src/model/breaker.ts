import type { HostRow } from "./fleet.ts";

type Breaker = Pick<HostRow, "breaker" | "breakerCode" | "breakerEndsInMs">;

/** How long an open breaker still stays open, counted from the arrival of the row. */
export function breakerLeft({ breakerEndsInMs = 0 }: Breaker, seenAt: number, now: number): number {
  // The clock of the page ticks once a second, so it may be before the arrival of the row.
  return Math.max(0, breakerEndsInMs - Math.max(0, now - seenAt));
}
