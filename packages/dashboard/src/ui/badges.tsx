import { breakerCause } from "@slotkeeper/protocol";
import { seconds } from "../format.ts";
import { now } from "../model/clock.ts";
import type { HostRow } from "../model/fleet.ts";
import { breakerLeft, type Load, type LoadRow, loadOf } from "../model/load.ts";

const MEANING: { readonly [load in Load]: string } = {
  idle: "No slot is in use",
  busy: "Some slots are in use, and some are free",
  full: "Every slot is in use, and no session waits",
  queueing: "Sessions wait for a slot",
  crowded: "Many more wait than there are slots",
  "breaker testing": "Single requests are let through to see whether the host is well again",
  "breaker open": "The breaker is open: no request is let through",
  paused: "An operator has paused the host: it grants nothing new",
};

export function LoadBadge({ row }: { row: LoadRow }) {
  const load = loadOf(row);
  return (
    <span class={`badge load-${load.replace(" ", "-")}`} title={MEANING[load]}>
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
      <span class="badge breaker-testing" title={MEANING["breaker testing"]}>
        testing
      </span>
    );
  }
  return (
    <span class="badge breaker-open" title={`The breaker is open: ${breakerCause(row)}`}>
      open, {seconds(breakerLeft(row, seenAt, now.value))} left
    </span>
  );
}
