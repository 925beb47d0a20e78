import { count, duration } from "../format.ts";
import type { HostRow } from "../model/fleet.ts";
import type { SortKey } from "../model/host-order.ts";
import { waitingAt } from "../model/load.ts";
import { BreakerBadge, LoadBadge } from "./badges.tsx";
import type { Column } from "./headings.tsx";
import { HostLink } from "./name.tsx";
import { isNarrow } from "./narrow.ts";
import { UseBar } from "./use-bar.tsx";

/** The columns of a table of hosts, in the order of `HostCells`. */
export const HOST_COLUMNS: readonly (Column & { readonly key: SortKey })[] = [
  { key: "name", title: "Host", class: "cell-name" },
  { key: "load", title: "State", class: "cell-load" },
  { key: "use", title: "Slots in use", class: "cell-use" },
  { key: "waiting", title: "Waiting", class: "cell-number cell-waiting" },
  { key: "oldest", title: "Longest wait", class: "cell-number cell-extra" },
  { key: "average", title: "Average wait", class: "cell-number cell-extra" },
  { key: "breaker", title: "Breaker", class: "cell-breaker" },
];

export function hostRowHeight(): number {
  return isNarrow.value ? 66 : 44;
}

export function HostCells({ row }: { row: HostRow }) {
  const waiting = waitingAt(row);
  return (
    <>
      <div role="cell" class="cell-name">
        <HostLink host={row.host} hostname={row.hostname} />
      </div>
      <div role="cell" class="cell-load">
        <LoadBadge row={row} />
      </div>
      <div role="cell" class="cell-use">
        <UseBar inFlight={row.inFlight} limit={row.limit} />
      </div>
      <div role="cell" class="cell-number cell-waiting">
        {waiting === 0 ? <span class="quiet">0</span> : count(waiting)}
      </div>
      <div role="cell" class="cell-number cell-extra">
        {row.oldestWaitMs > 0 ? duration(row.oldestWaitMs) : <span class="quiet">–</span>}
      </div>
      <div role="cell" class="cell-number cell-extra">
        {row.avgWaitMs > 0 ? duration(row.avgWaitMs) : <span class="quiet">–</span>}
      </div>
      <div role="cell" class="cell-breaker">
        <BreakerBadge row={row} seenAt={row.seenAt} />
      </div>
    </>
  );
}
