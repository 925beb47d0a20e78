import { CONSTRAINED_HOST, type Demand, demandOf } from "./constrained-host.ts";

/** The behaviour of the clients of one host. */
export interface HostPlan {
  readonly hostname: string;
  readonly buckets: number;
  /** Each asks, holds, releases, pauses, and asks again. */
  readonly clients: number;
  readonly holdMs: readonly [least: number, most: number];
  readonly pauseMs: readonly [least: number, most: number];
  /** The part of the upstream's answers that are 503. Enough of them open the breaker. */
  readonly failures?: number;
  /** What each request asks for beside a slot. */
  readonly demand?: (random: () => number) => Demand;
}

/** Typical upstreams: idle, busy, crowded, unfair, failing. */
export const DEMO_PLAN: readonly HostPlan[] = [
  { hostname: "api.payments.example", buckets: 14, clients: 26, holdMs: [300, 1_500], pauseMs: [100, 900] },
  { hostname: "cdn.images.example", buckets: 9, clients: 12, holdMs: [40, 200], pauseMs: [20, 300] },
  { hostname: "search.catalog.example", buckets: 6, clients: 7, holdMs: [200, 900], pauseMs: [100, 800] },
  { hostname: "maps.tiles.example", buckets: 5, clients: 5, holdMs: [100, 500], pauseMs: [300, 1_200] },
  { hostname: "mail.relay.example", buckets: 4, clients: 6, holdMs: [400, 1_000], pauseMs: [300, 900], failures: 0.5 },
  { hostname: "exports.reports.example", buckets: 3, clients: 4, holdMs: [3_000, 9_000], pauseMs: [500, 3_000] },
  { hostname: "auth.partners.example", buckets: 8, clients: 9, holdMs: [80, 400], pauseMs: [50, 700] },
  { hostname: "legacy.inventory.example", buckets: 2, clients: 2, holdMs: [600, 2_000], pauseMs: [1_000, 6_000] },
  { hostname: "webhooks.crm.example", buckets: 3, clients: 3, holdMs: [100, 300], pauseMs: [500, 2_500] },
  { hostname: "status.weather.example", buckets: 1, clients: 1, holdMs: [50, 150], pauseMs: [2_000, 6_000] },
];

/** A host with budgets, keys and classes: see `CONSTRAINTS`. */
export const CONSTRAINED_PLAN: HostPlan = {
  hostname: CONSTRAINED_HOST,
  buckets: 4,
  clients: 14,
  holdMs: [100, 700],
  pauseMs: [20, 300],
  demand: demandOf,
};

/** Many hosts with a client each, so that most rows of a table change all the time. */
export function manyHosts(count: number): HostPlan[] {
  return Array.from({ length: count }, (_, index) => ({
    hostname: `host-${String(index).padStart(5, "0")}.example`,
    buckets: 1,
    clients: 1,
    holdMs: [500, 4_000] as const,
    pauseMs: [1_000, 20_000] as const,
  }));
}
