import { signal } from "@preact/signals";
import type { LiveState, ServiceState } from "@slotkeeper/protocol";
import { read } from "../api/call.ts";

/** A host as the tables show it, with the time of its arrival at the page. Ages and countdowns continue from there. */
export type HostRow = LiveState["hosts"][number] & { readonly seenAt: number };

export interface Totals {
  readonly inFlight: number;
  readonly limit: number;
  readonly waiting: number;
  /** The number of sessions since the start of the instance. */
  readonly created: number;
}

/** All hosts by key. The map is replaced as a whole after any change. */
export const hosts = signal<ReadonlyMap<string, HostRow>>(new Map());
export const totals = signal<Totals | undefined>(undefined);

const PAGE = 1_000;
/** More rows than a person can read. The total number is shown next to the table. */
const MOST_ROWS = 20_000;

/** Reads every host. Hosts that the service has forgotten since the last time disappear. */
export async function loadHosts(signal: AbortSignal): Promise<void> {
  const rows = new Map<string, HostRow>();
  for (let offset = 0; offset < MOST_ROWS; offset += PAGE) {
    const page = await read<ServiceState>(`/state?sessions=0&limit=${PAGE}&offset=${offset}`, signal);
    const seenAt = performance.now();
    // oxlint-disable-next-line no-unused-vars -- a row leaves out what only the host's own page shows
    for (const { limits, progressMs, buckets, slots, sessions, ...row } of page.hosts) {
      rows.set(row.host, { ...row, seenAt });
    }
    if (offset + PAGE >= page.total) break;
  }
  hosts.value = rows;
}

export function applyLive(live: LiveState): void {
  const { slots, sessions, counts } = live;
  totals.value = {
    inFlight: slots.inFlight,
    limit: slots.limit,
    // The instance knows its newest sessions before the store does.
    waiting: Math.max(slots.waiting, sessions["pending"] ?? 0),
    created: counts["session_created"] ?? 0,
  };
  if (live.hosts.length === 0) return;
  const rows = new Map(hosts.value);
  const seenAt = performance.now();
  for (const row of live.hosts) {
    if (isForgotten(row)) rows.delete(row.host);
    else rows.set(row.host, { ...row, seenAt });
  }
  hosts.value = rows;
}

/** Whether neither the store nor the instance has any data about the host. */
function isForgotten({ limit, pending }: LiveState["hosts"][number]): boolean {
  return limit === undefined && pending === 0;
}
