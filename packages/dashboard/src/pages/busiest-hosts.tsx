import { count } from "../format.ts";
import { type HostRow, hosts } from "../model/fleet.ts";
import { LOADS, loadOf, waitingAt } from "../model/load.ts";
import { addressOf } from "../router.ts";
import { Headings } from "../ui/headings.tsx";
import { HOST_COLUMNS, HostCells, hostRowHeight } from "../ui/host-cells.tsx";
import { VirtualRows } from "../ui/virtual-rows.tsx";

const SHOWN = 8;

/** The hosts to check first: open breakers, then the longest queues. */
export function BusiestHosts() {
  const rows = [...hosts.value.values()].sort((a, b) => urgency(b) - urgency(a)).slice(0, SHOWN);
  return (
    <section class="card rows-card host-rows busiest" aria-labelledby="busiest-title">
      <div class="card-head">
        <h2 id="busiest-title">Look here first</h2>
        <a href={addressOf({ name: "hosts" })}>All hosts ({count(hosts.value.size)})</a>
      </div>
      <VirtualRows
        label="Hosts to look at first"
        count={rows.length}
        rowHeight={hostRowHeight()}
        header={<Headings columns={HOST_COLUMNS} />}
        row={(index) => <HostCells row={rows[index] as HostRow} />}
      />
    </section>
  );
}

function urgency(row: HostRow): number {
  const breaker = row.breaker === "closed" ? 0 : 1e9;
  return breaker + LOADS.indexOf(loadOf(row)) * 1e6 + waitingAt(row) + row.inFlight / 1e3;
}
