/**
 * `npm run bench:fleet -- [--instances 3] [--seconds 30] [--short] [--spread round-robin,by-bucket] [--json FILE]
 * [--through postgres,postgrest] [--weighted]`
 *
 * S7: a hot host (200 closed-loop sessions, 50 buckets, 4 slots, one per bucket, hold 100 ms) on several real processes
 * and one PostgreSQL. `round-robin`: every call goes to the next instance, as behind a proxy. `by-bucket`: each bucket
 * stays at one instance. The clients check the limits, and so does a query every 20 ms. A violation ends the process
 * with 1. With one instance it is S2.
 */
import { writeFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Audit, idleP99, utilisation } from "../service/load/audit.ts";
import { jain, percentile } from "../service/load/statistics.ts";
import { DatabaseWatch, type Work } from "./database-watch.ts";
import { type BenchFleet, startFleet, type Through } from "./fleet.ts";
import { FleetClient } from "./fleet-client.ts";

const SLOTS = 4;
const HOLD_MS = 100;
const BUCKETS = 50;
const SESSIONS = 200;
const IDEAL_WAIT_MS = (SESSIONS / SLOTS - 1) * HOLD_MS;
const CONFIG = { maxSlotPerHost: SLOTS, maxSlotPerIp: 1, maxWaitersPerHost: 0, globalMaxWaiters: -1 };

/** A hot host by the rules of the seed: many pending sessions, and waits longer than these. */
const WEIGHTED = { weightedScheduler: { enabled: true, coldAvgWaitMs: 100, hotAvgWaitMs: 500 } };

/** The number of calls that have passed the round robin. */
let passed = 0;

type Spread = "round-robin" | "by-bucket";
type Figures = Record<string, number>;

interface Granted {
  readonly at: number;
  /** The instance that answered. */
  readonly instance: number;
  readonly waitedMs: number;
}

const { values } = parseArgs({
  options: {
    instances: { type: "string", default: "3" },
    seconds: { type: "string" },
    spread: { type: "string", default: "round-robin,by-bucket" },
    through: { type: "string", default: "postgres" },
    weighted: { type: "boolean", default: false },
    short: { type: "boolean", default: false },
    json: { type: "string" },
    help: { type: "boolean", default: false },
  },
});

if (values.help) {
  console.log(`Usage: npm run bench:fleet -- [options]

  --instances N   processes of the service (3)
  --seconds N     how long to measure, after a warm-up (30; in short mode 6)
  --spread WAYS   round-robin, by-bucket, or both with a comma between them (both)
  --through WAYS  postgres, postgrest (the stand-in), or both with a comma between them (postgres)
  --weighted      with the weighted scheduler, and the host hot
  --short         a smoke run, not a measurement
  --json FILE     keeps the figures
  --help          shows this`);
  process.exit(0);
}

const instances = Number(values.instances);
const seconds = Number(values.seconds ?? (values.short ? 6 : 30));
const report: Record<string, Figures> = {};
for (const through of values.through.split(",") as Through[]) {
  for (const spread of values.spread.split(",") as Spread[]) {
    const name = `${through}, ${instances} instances, ${spread}${values.weighted ? ", weighted" : ""}`;
    const fleet = await startFleet(instances, { ...CONFIG, ...(values.weighted ? WEIGHTED : {}) }, through);
    try {
      report[name] = await measure(fleet, spread);
    } finally {
      await fleet.stop();
    }
    console.log(`S7 through ${name}`);
    for (const [figure, value] of Object.entries(report[name])) console.log(`  ${figure.padEnd(34)}${format(value)}`);
  }
}
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(report, undefined, 2)}\n`);
if (Object.values(report).some((figures) => (figures["violations"] ?? 0) > 0)) process.exitCode = 1;

async function measure({ dsn, urls }: BenchFleet, spread: Spread): Promise<Figures> {
  const watch = new DatabaseWatch(dsn, SLOTS);
  const audit = new Audit({ slots: SLOTS, slotsPerBucket: 1 });
  const granted: Granted[] = [];
  let to = Number.POSITIVE_INFINITY;
  const isOver = () => performance.now() >= to;
  const clients = Array.from({ length: SESSIONS }, (_, n) => new FleetClient(urls, chooser(spread, n, urls.length)));
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
  await pause(values.short ? 2_000 : 2 * IDEAL_WAIT_MS);
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

function format(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toFixed(3);
}
