// Measures the cost of an idle fleet for the database: `npm run build && node scripts/idle-cost.mjs [--seconds 30]
// [--waiting]`. `--waiting` leaves out the scenarios without callers.
//
// Starts a PostgreSQL and three instances, and counts the transactions of the database (pg_stat_database) by scenario:
// no calls; no calls after a load; 500 sessions wait, on one host and on a hundred. Exits with 1 beyond the bounds of
// issue "The fleet".
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Service } from "@slotkeeper/server";
import { dsnOf, onServer, openCluster } from "@slotkeeper/testkit/postgres";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "30" },
    waiting: { type: "boolean" },
    "away-ms": { type: "string", default: "0" },
  },
});
const SECONDS = Number(values.seconds);
const AWAY_MS = Number(values["away-ms"]);
/** Connections report their counts after at most ten idle seconds. */
const SETTLE_MS = 12_000;
const SESSIONS = 500;

const cluster = await openCluster();
const name = `${cluster.prefix}_idle`;
await onServer(cluster.dsn, (client) => client.query(`CREATE DATABASE ${name} TEMPLATE ${cluster.template}`));
const fairQueue = {
  maxSlotPerHost: 1,
  maxSlotPerIp: -1,
  maxWaitMs: 600_000,
  zombieTimeoutSeconds: 600,
  maxWaitersPerHost: 0,
  globalMaxWaiters: -1,
};
const config = { listen: "127.0.0.1:0", fairQueue, backend: { postgres: { dsn: dsnOf(cluster.dsn, name) } } };
const log = { write: () => {}, isJson: true, hasColours: false };
const fleet = await Promise.all([1, 2, 3].map(() => Service.start({ flags: config, log })));

let isOver = false;
const results = [];
try {
  if (values.waiting !== true) {
    results.push(await measure("no calls", 1));
    await load();
    results.push(await measure("no calls, after a load", 1));
  }
  for (const hosts of [1, 100]) {
    const release = await waiters(hosts);
    results.push(await measure(`${SESSIONS} sessions wait on ${hosts} host${hosts > 1 ? "s" : ""}`, 5));
    await release();
  }
} finally {
  isOver = true;
  await Promise.all(fleet.map((service) => service.stop()));
  await cluster.close();
}
process.exitCode = results.every(Boolean) ? 0 : 1;

async function measure(title, most) {
  await pause(SETTLE_MS);
  const before = await calls();
  // By then, the cost of the scrape itself is counted.
  await pause(SETTLE_MS);
  const first = await transactions();
  await pause(SECONDS * 1000);
  const perSecond = ((await transactions()) - first) / SECONDS;
  const after = await calls();
  const rates = Object.entries(after).map(([call, count]) => [
    call,
    (count - (before[call] ?? 0)) / (SECONDS + SETTLE_MS / 1000),
  ]);
  const shown = rates.filter(([, rate]) => rate > 0).map(([call, rate]) => `${call} ${rate.toFixed(2)}`);
  const isMet = perSecond <= most;
  console.log(
    `${title}: ${perSecond.toFixed(2)} transactions/s (≤ ${most}${isMet ? "" : ", EXCEEDED"}); calls/s: ${shown.join(", ")}`,
  );
  return isMet;
}

function transactions() {
  return onServer(cluster.dsn, async (client) => {
    const sql = "SELECT xact_commit + xact_rollback AS total FROM pg_stat_database WHERE datname = $1";
    return Number((await client.query(sql, [name])).rows[0].total);
  });
}

/**
 * The calls of all instances to their stores, by operation, without those of the scrape, which reads the store, too.
 */
async function calls() {
  const sums = {};
  for (const { url } of fleet) {
    const text = await (await fetch(`${url}/metrics`)).text();
    for (const [, operation, count] of text.matchAll(/^slotkeeper_store_seconds_count\{operation="(\w+)"\} (\d+)$/gm)) {
      sums[operation] = (sums[operation] ?? 0) + Number(count);
    }
  }
  return sums;
}

async function call(service, path, body) {
  const init = { method: "POST", body: JSON.stringify(body) };
  return (await fetch(`${service.url}/api/v0/fairqueue/${path}`, init)).json();
}

/** Uses a hundred hosts from every instance. */
async function load() {
  const endsAt = Date.now() + 5_000;
  const client = async (at) => {
    for (let turn = 0; Date.now() < endsAt; turn++) {
      const service = fleet[(at + turn) % fleet.length];
      const body = { hostname: `load-${(at * 7 + turn) % 100}.example.com`, ipBucket: `b${at}`, waitMs: 2_000 };
      const { result, slotToken, queryToken } = await call(service, "acquire", body);
      if (result === "granted") await call(service, "release", { slotToken });
      else if (queryToken !== undefined) await call(service, "cancel", { queryToken });
    }
  };
  await Promise.all(Array.from({ length: 32 }, (_, at) => client(at)));
}

/** Starts sessions that wait, each polled at the instance where it began. Returns a function that ends them. */
async function waiters(hosts) {
  const names = Array.from({ length: hosts }, (_, at) => `wait-${hosts}-${at}.example.com`);
  const held = [];
  for (const hostname of names)
    held.push(await call(fleet[0], "acquire", { hostname, ipBucket: "holder", waitMs: 5_000 }));
  let isDone = false;
  const polled = Array.from({ length: SESSIONS }, async (_, at) => {
    const service = fleet[at % fleet.length];
    let { result, queryToken } = await call(service, "acquire", { hostname: names[at % hosts], ipBucket: `b${at}` });
    while (result === "pending" && !isDone && !isOver) {
      if (AWAY_MS > 0) await pause(AWAY_MS);
      ({ result, queryToken = queryToken } = await call(service, "acquire", { queryToken }));
    }
    if (result === "pending") await call(service, "cancel", { queryToken });
  });
  return async () => {
    isDone = true;
    await Promise.all(polled);
    for (const { slotToken } of held) await call(fleet[0], "release", { slotToken });
  };
}
