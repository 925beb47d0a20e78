import { setTimeout as pause } from "node:timers/promises";
import type { FairQueueConfig } from "@slotkeeper/protocol";
import { Audit, idleP99, utilisation } from "../service/load/audit.ts";
import { jain, percentile } from "../service/load/statistics.ts";
import { DatabaseWatch, type Work } from "./database-watch.ts";
import type { BenchFleet } from "./fleet.ts";
import { FleetClient } from "./fleet-client.ts";

const SLOTS = 4;
const HOLD_MS = 100;
const BUCKETS = 50;
const SESSIONS = 200;
const IDEAL_WAIT_MS = (SESSIONS / SLOTS - 1) * HOLD_MS;
/** The limits of the hot host. */
export const CONFIG: FairQueueConfig = {
  maxSlotPerHost: SLOTS,
  maxSlotPerIp: 1,
  maxWaitersPerHost: 0,
  globalMaxWaiters: -1,
};

/** A hot host by the rules of the seed: many pending sessions, and waits longer than these. */
export const WEIGHTED: FairQueueConfig = {
  weightedScheduler: { enabled: true, coldAvgWaitMs: 100, hotAvgWaitMs: 500 },
};

/** The number of calls that have passed the round robin. */
let passed = 0;

export type Spread = "round-robin" | "by-bucket";
export type Figures = Record<string, number>;

interface Granted {
  readonly at: number;
  /** The instance that answered. */
  readonly instance: number;
  readonly waitedMs: number;
}

export interface FleetRun {
  readonly spread: Spread;
  readonly seconds: number;
  /** Before the measurement. Default: twice the ideal wait. */
  readonly warmUpMs?: number;
  /** How long a first call asks to be held. Default: as long as the service allows. */
  readonly waitMs?: number;
}

/** Runs S7 on the fleet. */
export async function measureFleet({ dsn, urls }: BenchFleet, run: FleetRun): Promise<Figures> {
  const { spread, seconds, warmUpMs = 2 * IDEAL_WAIT_MS, waitMs = 600_000 } = run;
  const watch = new DatabaseWatch(dsn, SLOTS);
  const audit = new Audit({ slots: SLOTS, slotsPerBucket: 1 });
  const granted: Granted[] = [];
  let to = Number.POSITIVE_INFINITY;
  const isOver = () => performance.now() >= to;
  const clients = Array.from(
    { length: SESSIONS },
    (_, n) => new FleetClient(urls, chooser(spread, n, urls.length), waitMs),
  );
  const running = clients.map(async (client, n) => {
    const bucket = `b${n % BUCKETS}`;
    while (!isOver()) {
      const askedAt = performance.now();
      const slot = await client.acquire("s7.example", bucket, isOver);
      if (slot === undefined) return;
      const waitedMs = performance.now() - askedAt;
      const hold = audit.granted("s7.example", bucket, slot.fence, waitedMs);
      granted.push({ at: performance.now(), instance: slot.instance, waitedMs });
      await pause(HOLD_MS);
      audit.releasing(hold);
      await client.release(slot.slotToken);
    }
  });
  let failure: unknown;
  const finished = Promise.all(
    running.map((client) =>
      client.catch((error: unknown) => {
        // At the end, connections are closed while calls still wait.
        if (!isOver()) failure ??= error;
      }),
    ),
  );
  await pause(warmUpMs);
  const from = performance.now();
  to = from + seconds * 1000;
  const before = await watch.work();
  await pause(seconds * 1000);
  const after = await watch.work();
  for (const client of clients) client.close();
  await finished;
  await watch.stop();
  if (failure !== undefined) throw new Error("A client of the fleet failed.", { cause: failure });
  const holds = audit.holds.filter(({ grantedAt }) => grantedAt >= from && grantedAt < to);
  const byBucket = Array.from({ length: BUCKETS }, (_, n) => holds.filter(({ bucket }) => bucket === `b${n}`).length);
  const byInstance = urls.map((_, n) => granted.filter(({ at, instance }) => at >= from && instance === n).length);
  return {
    "grants per second": holds.length / seconds,
    utilisation: utilisation(audit.holds, { slots: SLOTS, from, to }),
    "Jain of buckets": jain(byBucket),
    "slowest ÷ fastest instance": Math.min(...byInstance) / Math.max(...byInstance),
    "shortest ÷ longest average wait": waitRatio(
      granted.filter(({ at }) => at >= from),
      urls.length,
    ),
    "wait p99 ÷ ideal":
      percentile(
        holds.map(({ waitedMs }) => waitedMs),
        99,
      ) / IDEAL_WAIT_MS,
    "hand-over p99 ms": idleP99(audit.holds, { slots: SLOTS, from, to }),
    ...costs(before, after, holds.length),
    violations: audit.violations + watch.violations,
  };
}

/** What a grant costs in the database. */
function costs(before: Work, after: Work, grants: number): Figures {
  const spent = (of: (work: Work) => number) => (of(after) - of(before)) / grants;
  return {
    "transactions per grant": spent(({ calls }) => calls),
    "  commits accepted": spent(({ commits, refused }) => commits - refused),
    "  commits refused (conflicts)": spent(({ refused }) => refused),
    "  reads": spent(({ reads }) => reads),
    "  beats and others": spent(({ calls, commits, reads }) => calls - commits - reads),
    "listeners woken per grant": spent(({ wakes }) => wakes),
    "database time per grant, ms": spent(({ ms }) => ms),
  };
}

/**
 * Chooses the instance of a client's next call. Buckets are distributed evenly. Round robin is that of one proxy for
 * all clients: with one for each client, or at random, chance alone makes the slowest instance 0.82 to 0.97 of the
 * fastest in 20 s.
 */
function chooser(spread: Spread, client: number, count: number): () => number {
  return spread === "by-bucket" ? () => (client % BUCKETS) % count : () => passed++ % count;
}

/** The shortest average wait of the sessions of an instance, divided by the longest. */
function waitRatio(granted: readonly Granted[], instances: number): number {
  const averages = Array.from({ length: instances }, (_, n) => {
    const waits = granted.filter(({ instance }) => instance === n).map(({ waitedMs }) => waitedMs);
    return waits.reduce((sum, ms) => sum + ms, 0) / waits.length;
  });
  return Math.min(...averages) / Math.max(...averages);
}
