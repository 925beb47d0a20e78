import { nameOfHost } from "../format.ts";
import type { HostRow } from "./fleet.ts";
import { urgencyOf, waitingAt } from "./load.ts";

/**
 * The column by which the hosts are sorted. Each shows the worst hosts first; selecting it again reverses the order.
 */
export type SortKey = "name" | "load" | "use" | "waiting" | "oldest" | "average" | "breaker";

export interface Sorting {
  readonly key: SortKey;
  readonly isReversed: boolean;
}

const BREAKERS = ["closed", "half-open", "open"];

const VALUE: { readonly [key in Exclude<SortKey, "name">]: (row: HostRow) => number } = {
  load: urgencyOf,
  use: ({ inFlight, limit = 0 }) => (limit === 0 ? 0 : inFlight / limit) + inFlight / 1e9,
  waiting: waitingAt,
  oldest: ({ oldestWaitMs }) => oldestWaitMs,
  average: ({ avgWaitMs }) => avgWaitMs,
  breaker: ({ breaker }) => BREAKERS.indexOf(breaker),
};

/** The hosts whose name or key contains the text, sorted. Equal hosts are in the order of their names. */
export function arranged(rows: Iterable<HostRow>, text: string, { key, isReversed }: Sorting): HostRow[] {
  const wanted = text.trim().toLowerCase();
  const found = [...rows].filter(
    ({ host, hostname = "" }) => wanted === "" || hostname.toLowerCase().includes(wanted) || host.includes(wanted),
  );
  const sign = isReversed ? -1 : 1;
  if (key === "name") return found.sort((a, b) => sign * byName(a, b));
  const value = VALUE[key];
  return found.sort((a, b) => sign * (value(b) - value(a)) || byName(a, b));
}

function byName(a: HostRow, b: HostRow): number {
  return nameOfHost(a) < nameOfHost(b) ? -1 : 1;
}
