import { count, duration } from "../format.ts";
import type { HostRow } from "../model/fleet.ts";
import type { SortKey } from "../model/host-order.ts";
import { waitingAt } from "../model/load.ts";
import { BreakerBadge, LoadBadge } from "./badges.tsx";
import { UseBar } from "./bar.tsx";
import { HostLink } from "./name.tsx";
import { isNarrow } from "./narrow.ts";
import type { Column } from "./virtual-rows.tsx";

export interface HostColumn extends Column<HostRow> {
  readonly key: SortKey;
}

/** The columns of a table of hosts. */
export const HOST_COLUMNS: readonly HostColumn[] = [
  {
    key: "name",
    title: "Host",
    class: "cell-name",
    cell: ({ host, hostname }) => <HostLink host={host} hostname={hostname} />,
  },
  { key: "load", title: "State", class: "cell-load", cell: (row) => <LoadBadge row={row} /> },
  {
    key: "use",
    title: "Slots in use",
    class: "cell-use",
    cell: ({ inFlight, limit }) => <UseBar inFlight={inFlight} limit={limit} />,
  },
  {
    key: "waiting",
    title: "Waiting",
    class: "cell-number cell-waiting",
    cell: (row) => orQuiet(waitingAt(row), count, "0"),
  },
  {
    key: "oldest",
    title: "Longest wait",
    class: "cell-number cell-extra",
    cell: ({ oldestWaitMs }) => orQuiet(oldestWaitMs, duration, "–"),
  },
  {
    key: "average",
    title: "Average wait",
    class: "cell-number cell-extra",
    cell: ({ avgWaitMs }) => orQuiet(avgWaitMs, duration, "–"),
  },
  {
    key: "breaker",
    title: "Breaker",
    class: "cell-breaker",
    cell: (row) => <BreakerBadge row={row} seenAt={row.seenAt} />,
  },
];

function orQuiet(value: number, format: (value: number) => string, nothing: string) {
  return value > 0 ? format(value) : <span class="quiet">{nothing}</span>;
}

export function hostRowHeight(): number {
  return isNarrow.value ? 66 : 44;
}
