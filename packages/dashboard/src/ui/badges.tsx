import { seconds } from "../format.ts";
import { breakerCause, breakerLeft } from "../model/breaker.ts";
import { now } from "../model/clock.ts";
import type { HostRow } from "../model/fleet.ts";
import { type Load, loadOf } from "../model/load.ts";

const MEANING: { readonly [load in Load]: string } = {
  idle: "No slot is in use",
  busy: "Some slots are in use, and some are free",
  full: "Every slot is in use, and no session waits",
  queueing: "Sessions wait for a slot",
  crowded: "Many more wait than there are slots",
};

export function LoadBadge({ row }: { row: Pick<HostRow, "limit" | "inFlight" | "pending" | "waiting" | "isHot"> }) {
  const load = loadOf(row);
  return (
    <span class={`badge load-${load}`} title={MEANING[load]}>
      {load}
    </span>
  );
}

type BreakerRow = Pick<HostRow, "breaker" | "breakerCode" | "breakerEndsInMs">;

/** Counts down by itself between two messages of the service. */
export function BreakerBadge({ row, seenAt }: { row: BreakerRow; seenAt: number }) {
  if (row.breaker === "closed") return <span class="badge quiet">closed</span>;
  if (row.breaker === "half-open") {
    return (
      <span class="badge breaker-testing" title="Single requests are let through to see whether the host is well again">
        testing
      </span>
    );
  }
  return (
    <span class="badge breaker-open" title={`The host is paused: ${breakerCause(row)}`}>
      open, {seconds(breakerLeft(row, seenAt, now.value))} left
    </span>
  );
}
