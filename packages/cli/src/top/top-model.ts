import type { HostState } from "../operate/call-operator.ts";
import type { Snapshot } from "./read-service.ts";

/** The state of the screen, and what the user has selected. */
export interface TopModel {
  readonly snapshot: Snapshot | undefined;
  /** Why the last reading failed; empty if it did not fail. */
  readonly problem: string;
  readonly sort: SortKey;
  readonly isReversed: boolean;
  readonly search: string;
  /** Whether keys go to the search field. */
  readonly isTyping: boolean;
  /** The key of the host under the cursor, and of the host that is open. */
  readonly cursor: string | undefined;
  readonly open: string | undefined;
}

export const SORTS = ["host", "use", "waiting", "longest", "average", "breaker"] as const;
export type SortKey = (typeof SORTS)[number];

export const FIRST_MODEL: TopModel = {
  snapshot: undefined,
  problem: "",
  sort: "waiting",
  isReversed: false,
  search: "",
  isTyping: false,
  cursor: undefined,
  open: undefined,
};

export function nameOf({ host, hostname }: HostState): string {
  return hostname ?? (host.length > 20 ? `${host.slice(0, 16)}…` : host);
}

/** The instance knows its own sessions; the store knows the waiters of the fleet. */
export function waitingAt({ pending, waiting }: HostState): number {
  return Math.max(pending, waiting);
}

const VALUES: { readonly [key in Exclude<SortKey, "host">]: (row: HostState) => number } = {
  use: ({ inFlight, limit = 0 }) => (limit === 0 ? 0 : inFlight / limit),
  // The first order of the table: an open breaker goes before any queue, because such a host has none.
  waiting: (row) => (row.breaker === "open" ? 1e9 : 0) + waitingAt(row) + row.inFlight / 1e6,
  longest: ({ oldestWaitMs }) => oldestWaitMs,
  average: ({ avgWaitMs }) => avgWaitMs,
  breaker: ({ breaker }) => ["closed", "half-open", "open"].indexOf(breaker),
};

/** The hosts that match the search, largest value first; names in alphabetical order. */
export function shownHosts({ snapshot, sort, isReversed, search }: TopModel): HostState[] {
  const wanted = search.toLowerCase();
  const rows = (snapshot?.state.hosts ?? []).filter(
    (row) => wanted === "" || `${row.hostname ?? ""} ${row.host}`.toLowerCase().includes(wanted),
  );
  const sign = isReversed ? -1 : 1;
  if (sort === "host") return rows.sort((a, b) => sign * byName(a, b));
  const value = VALUES[sort];
  return rows.sort((a, b) => sign * (value(b) - value(a)) || byName(a, b));
}

function byName(a: HostState, b: HostState): number {
  return nameOf(a) < nameOf(b) ? -1 : 1;
}
