// Shows that the records of ended sessions stay bounded, after a build: sessions of a named semaphore may wait for a day, so
// their ends would otherwise be kept for a day. The day of the memory store runs in virtual time, at 50 acquires per second.
// The journal and PostgreSQL run as fast as they can, past the bound; then the time of a restart is measured.
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { PostgresStore } from "@slotkeeper/postgres";
import { FairQueue, MemoryStore } from "@slotkeeper/queue";
import { openJournaledMemoryStore } from "@slotkeeper/server/internals";
import { dsnOf, onServer, openCluster } from "@slotkeeper/testkit/postgres";
import { realClock } from "slotkeeper";

const { values } = parseArgs({
  options: {
    help: { type: "boolean", default: false },
    hours: { type: "string", default: "24" },
    acquires: { type: "string", default: "30000" },
  },
});
if (values.help) {
  console.log(`Usage: node --expose-gc scripts/ended-sessions.mjs [--hours 24] [--acquires 30000]`);
  process.exit(0);
}

const HOST = { host: "sem", hostname: "sem:day" };
const DAY_MS = 86_400_000;
const PER_SECOND = 50;
const AT_ONCE = 16;

/** Virtual time: timers fire when the day has reached them. */
class DayClock {
  #now = Date.now();
  #timers = new Set();

  now() {
    return this.#now;
  }

  setTimer(callback, delayMs) {
    const timer = { callback, at: this.#now + delayMs };
    this.#timers.add(timer);
    return timer;
  }

  clearTimer(timer) {
    this.#timers.delete(timer);
  }

  advance(ms) {
    this.#now += ms;
    for (const timer of this.#timers) {
      if (timer.at > this.#now) continue;
      this.#timers.delete(timer);
      timer.callback();
    }
  }
}

function queueOn(store, clock) {
  const names = { newSessionId: randomUUID, newSecret: randomUUID, instance: randomUUID() };
  return new FairQueue({ store, clock, random: Math.random, ...names });
}

async function use(queue) {
  const answer = await queue.begin({ ...HOST, bucket: "b", limit: AT_ONCE, maxWaitMs: DAY_MS, waitMs: 5_000 });
  if (answer.result !== "granted") throw new Error(`Expected granted, got ${JSON.stringify(answer)}`);
  await new Promise((resolve) => queue.release({ slotToken: answer.slotToken }, resolve));
}

const endsOf = async (store) => {
  const records = (await store.peek([HOST.host])).get(HOST.host)?.records ?? [];
  return records.filter(({ kind }) => kind === "ending").length;
};
const megabytes = (bytes) => (bytes / 1e6).toFixed(1);

async function memoryDay(hours) {
  const clock = new DayClock();
  const store = new MemoryStore({ clock });
  const queue = queueOn(store, clock);
  await queue.start();
  console.log("memory store, virtual time\n  hour  acquires  ends kept  heap MB");
  for (let hour = 1; hour <= hours; hour++) {
    for (let count = 0; count < 3600 * PER_SECOND; count++) {
      await use(queue);
      clock.advance(1000 / PER_SECOND);
      if (count % 1_000 === 0) await new Promise(setImmediate);
    }
    if (hour > 2 && hour % 4 !== 0 && hour !== hours) continue;
    globalThis.gc?.();
    const heap = megabytes(process.memoryUsage().heapUsed);
    console.log(`  ${hour}  ${hour * 3600 * PER_SECOND}  ${await endsOf(store)}  ${heap}`);
  }
  queue.close();
}

/** Runs `steps` times `count` acquires, and calls `show` after each. */
async function fill(store, clock, count, show) {
  const queue = queueOn(store, clock);
  await queue.start();
  for (let step = 1; step <= 3; step++) {
    let left = count / 3;
    await Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        while (left-- > 0) await use(queue);
      }),
    );
    await show((step * count) / 3);
  }
  await queue.leave();
  queue.close();
}

/** The time from the start of a process to its first grant. */
async function restart(open) {
  const startedAt = performance.now();
  const { store, clock, close } = await open();
  const queue = queueOn(store, clock);
  await queue.start();
  await use(queue);
  console.log(`  restart to first grant: ${(performance.now() - startedAt).toFixed(0)} ms`);
  queue.close();
  await close();
}

async function journal(acquires) {
  const folder = mkdtempSync(join(tmpdir(), "ended-sessions-"));
  const path = join(folder, "journal");
  const open = () => openJournaledMemoryStore({ path, clock: realClock, newTokenKey: randomUUID });
  try {
    console.log("journal\n  acquires  ends kept  file MB");
    const { store, clock, close } = await open();
    await fill(store, clock, acquires, async (count) => {
      console.log(`  ${count}  ${await endsOf(store)}  ${megabytes(statSync(path).size)}`);
    });
    await close();
    await restart(open);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function postgres(acquires) {
  const cluster = await openCluster();
  const name = `${cluster.prefix}_ends`;
  const dsn = dsnOf(cluster.dsn, name);
  const open = async () => {
    const store = await PostgresStore.open({ dsn });
    return { store, clock: realClock, close: () => store.close() };
  };
  const size = "SELECT count(*) AS rows, pg_total_relation_size('slotkeeper_record') AS bytes FROM slotkeeper_record";
  try {
    await onServer(cluster.dsn, (client) => client.query(`CREATE DATABASE ${name} TEMPLATE ${cluster.template}`));
    console.log("PostgreSQL\n  acquires  ends kept  rows  table MB");
    const { store, clock, close } = await open();
    await fill(store, clock, acquires, async (count) => {
      // What autovacuum does every minute. Without it, the table of a run of seconds shows deleted rows.
      await onServer(dsn, (client) => client.query("VACUUM slotkeeper_record"));
      const { rows } = await onServer(dsn, (client) => client.query(size));
      console.log(`  ${count}  ${await endsOf(store)}  ${rows[0].rows}  ${megabytes(Number(rows[0].bytes))}`);
    });
    await close();
    await restart(open);
  } finally {
    await cluster.close();
  }
}

if (Number(values.hours) > 0) await memoryDay(Number(values.hours));
await journal(Number(values.acquires));
await postgres(Number(values.acquires));
process.exit(0);
