import { count, plural } from "../format.ts";
import { hosts } from "../model/fleet.ts";
import { isUrgent, urgencyOf } from "../model/load.ts";
import { addressOf } from "../router.ts";
import { Card } from "../ui/card.tsx";
import { HOST_COLUMNS, hostRowHeight } from "../ui/host-columns.tsx";
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
    <Card
      name="busiest"
      looks="rows-card host-rows busiest"
      title="Look here first"
      note={
        urgent === 0
          ? "No session waits, and every breaker is closed."
          : `${plural(urgent, "host")} with a queue or an open breaker`
      }
      link={<a href={addressOf({ name: "hosts" })}>All hosts ({count(hosts.value.size)})</a>}
    >
      <VirtualRows
        label="Hosts to look at first"
        count={rows.length}
        rowHeight={hostRowHeight()}
        columns={HOST_COLUMNS}
        row={(index) => rows[index]}
      />
    </Card>
  );
}
