/**
 * `node bench/dist/postgres/main.js [--short]`: ways to enforce the limits of a host in PostgreSQL, and the cost of
 * each.
 *
 * Eight workers take and release slots of one host for a second, each subject in turn (A B C, B C A, …). The figures
 * are medians of the rounds, with the spread. `over` counts how often a bucket had more slots than its limit, observed
 * from outside.
 */
import { parseArgs } from "node:util";
import { startPostgres } from "@slotkeeper/testkit/postgres";
import { Pool } from "pg";
import postgres from "postgres";
import { byFunction, byOtherDriver, byStatements, PER_BUCKET, SCHEMA, type Taker } from "./subjects.ts";

const { values } = parseArgs({ options: { short: { type: "boolean", default: false } } });
const ROUNDS = values.short ? 1 : 5;
const ROUND_MS = values.short ? 300 : 1000;
const WORKERS = 8;
const BUCKETS = 3;

const server = await startPostgres({ isDurable: true });
const pool = new Pool({ connectionString: server.dsn, max: WORKERS });
await pool.query(SCHEMA);
const unnamed = postgres(server.dsn, { max: WORKERS, prepare: false });
const named = postgres(server.dsn, { max: WORKERS });

const subjects: { readonly [name: string]: Taker } = {
  "row lock, one function, pg": byFunction(pool, "take_row_lock"),
  "advisory lock, one function, pg": byFunction(pool, "take_advisory_lock"),
  "numbered slots, SKIP LOCKED, pg": byFunction(pool, "take_skip_locked"),
  "row lock, several statements, pg": byStatements(pool),
  "row lock, one function, postgres": byOtherDriver(unnamed),
  "the same, named statements": byOtherDriver(named),
};

async function round(taker: Taker): Promise<{ perSecond: number; over: number }> {
  await pool.query("UPDATE slot SET bucket = NULL");
  const held = new Map<string, number>();
  const until = performance.now() + ROUND_MS;
  let granted = 0;
  let over = 0;
  const work = async (worker: number) => {
    for (let turn = 0; performance.now() < until; turn++) {
      const bucket = `b${(worker + turn) % BUCKETS}`;
      const id = await taker.take(bucket);
      if (id === 0) continue;
      held.set(bucket, (held.get(bucket) ?? 0) + 1);
      if ((held.get(bucket) as number) > PER_BUCKET) over++;
      granted++;
      // Held for one turn, so that slots that others take at the same time are counted.
      await new Promise(setImmediate);
      held.set(bucket, (held.get(bucket) as number) - 1);
      await taker.giveBack(id);
    }
  };
  await Promise.all(Array.from({ length: WORKERS }, (_, worker) => work(worker)));
  return { perSecond: (granted * 1000) / ROUND_MS, over };
}

const names = Object.keys(subjects);
const results = new Map(names.map((name) => [name, [] as { perSecond: number; over: number }[]]));
for (let at = 0; at < ROUNDS; at++) {
  for (const name of [...names.slice(at % names.length), ...names.slice(0, at % names.length)]) {
    results.get(name)?.push(await round(subjects[name] as Taker));
  }
}
for (const [name, rounds] of results) {
  const speeds = rounds.map(({ perSecond }) => perSecond).sort((a, b) => a - b);
  const over = rounds.reduce((sum, one) => sum + one.over, 0);
  const spread = `${speeds[0]?.toFixed(0)}..${speeds.at(-1)?.toFixed(0)}`;
  console.log(`${name.padEnd(36)} ${speeds[speeds.length >> 1]?.toFixed(0).padStart(6)}/s  (${spread})  over ${over}`);
}
await Promise.all([pool.end(), unnamed.end(), named.end()]);
await server.stop();
