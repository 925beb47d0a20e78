/**
 * `npm run bench:fleet -- [--instances 3] [--seconds 30] [--short] [--spread round-robin,by-bucket] [--json FILE]
 * [--through postgres,postgrest] [--weighted] [--wait-ms N] [--unsynced]`
 *
 * S7: a hot host (200 closed-loop sessions, 50 buckets, 4 slots, one per bucket, hold 100 ms) on several real processes
 * and one PostgreSQL that syncs every commit, as users run it. `round-robin`: every call goes to the next instance, as behind a proxy. `by-bucket`: each bucket
 * stays at one instance. The clients check the limits, and so does a query every 20 ms. A violation ends the process
 * with 1. With one instance it is S2.
 */
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { startFleet, type Through } from "./fleet.ts";
import { CONFIG, type Figures, measureFleet, type Spread, WEIGHTED } from "./measure.ts";

const { values } = parseArgs({
  options: {
    instances: { type: "string", default: "3" },
    seconds: { type: "string" },
    spread: { type: "string", default: "round-robin,by-bucket" },
    through: { type: "string", default: "postgres" },
    weighted: { type: "boolean", default: false },
    "wait-ms": { type: "string", default: "600000" },
    unsynced: { type: "boolean", default: false },
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
  --wait-ms N     how long a call asks to be held (as long as the service allows). With 5000 calls end near their grant
  --unsynced      PostgreSQL does not sync its commits: shows what the syncs cost
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
    const name = `${through}, ${instances} instances, ${spread}${values.weighted ? ", weighted" : ""}${values.unsynced ? ", unsynced" : ""}`;
    const fairQueue = { ...CONFIG, ...(values.weighted ? WEIGHTED : {}) };
    const fleet = await startFleet(instances, fairQueue, { through, isDurable: !values.unsynced });
    try {
      report[name] = await measureFleet(fleet, {
        spread,
        seconds,
        waitMs: Number(values["wait-ms"]),
        ...(values.short ? { warmUpMs: 2_000 } : {}),
      });
    } finally {
      await fleet.stop();
    }
    console.log(`S7 through ${name}`);
    for (const [figure, value] of Object.entries(report[name])) console.log(`  ${figure.padEnd(34)}${format(value)}`);
  }
}
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(report, undefined, 2)}\n`);
if (Object.values(report).some((figures) => (figures["violations"] ?? 0) > 0)) process.exitCode = 1;

function format(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toFixed(3);
}
