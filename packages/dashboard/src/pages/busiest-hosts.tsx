import { count, plural } from "../format.ts";
import { type HostRow, hosts } from "../model/fleet.ts";
import { isUrgent, urgencyOf } from "../model/load.ts";
import { addressOf } from "../router.ts";
import { Headings } from "../ui/headings.tsx";
import { HOST_COLUMNS, HostCells, hostRowHeight } from "../ui/host-cells.tsx";
import { VirtualRows } from "../ui/virtual-rows.tsx";

/** The charts below stay in view. */
const SHOWN = 5;

/**
 * The hosts to check first: open breakers, then the longest queues. The number of rows does not depend on the load, so
 * that the charts below do not move.
 */
export function BusiestHosts() {
  const all = [...hosts.value.values()].sort((a, b) => urgencyOf(b) - urgencyOf(a));
  const [rows, urgent] = [all.slice(0, SHOWN), all.filter(isUrgent).length];
  return (
    <section class="card rows-card host-rows busiest" aria-labelledby="busiest-title">
      <div class="card-head">
        <h2 id="busiest-title">Look here first</h2>
        <p class="quiet">
          {urgent === 0
            ? "No session waits, and every breaker is closed."
            : `${plural(urgent, "host")} with a queue or an open breaker`}
        </p>
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
