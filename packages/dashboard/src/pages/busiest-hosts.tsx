import { count, duration } from "../format.ts";
import { type HostRow, hosts } from "../model/fleet.ts";
import { LOADS, loadOf, waitingAt } from "../model/load.ts";
import { BreakerBadge, LoadBadge } from "../ui/badges.tsx";
import { HostLink } from "../ui/name.tsx";
import { UseBar } from "../ui/use-bar.tsx";
import { addressOf } from "../router.ts";

const SHOWN = 8;

/** Where to look first: open breakers, then the longest queues. */
export function BusiestHosts() {
  const rows = [...hosts.value.values()].sort((a, b) => urgency(b) - urgency(a)).slice(0, SHOWN);
  return (
    <section class="card" aria-labelledby="busiest-title">
      <div class="card-head">
        <h2 id="busiest-title">Look here first</h2>
        <a href={addressOf({ name: "hosts" })}>All {count(hosts.value.size)} hosts</a>
      </div>
      <div class="table-scroll">
        <table class="table">
          <thead>
            <tr>
              <th scope="col">Host</th>
              <th scope="col">Load</th>
              <th scope="col">Slots in use</th>
              <th scope="col" class="number">
                Waiting
              </th>
              <th scope="col" class="number">
                Longest wait
              </th>
              <th scope="col">Breaker</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <Row key={row.host} row={row} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Row({ row }: { row: HostRow }) {
  return (
    <tr>
      <td>
        <HostLink host={row.host} hostname={row.hostname} />
      </td>
      <td>
        <LoadBadge row={row} />
      </td>
      <td>
        <UseBar inFlight={row.inFlight} limit={row.limit} />
      </td>
      <td class="number">{count(waitingAt(row))}</td>
      <td class="number">{row.oldestWaitMs > 0 ? duration(row.oldestWaitMs) : "–"}</td>
      <td>
        <BreakerBadge row={row} seenAt={row.seenAt} />
      </td>
    </tr>
  );
}

function urgency(row: HostRow): number {
  const breaker = row.breaker === "closed" ? 0 : 1e9;
  return breaker + LOADS.indexOf(loadOf(row)) * 1e6 + waitingAt(row) + row.inFlight / 1e3;
}
