import { createHash } from "node:crypto";
import { Fleet } from "@slotkeeper/testkit/fleet";
import { HistoryRecorder, judgeHistory, recordingFetch } from "@slotkeeper/testkit/history";
import { onServer } from "@slotkeeper/testkit/postgres";
import { Client } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";

/**
 * Three real processes on a real database. The tests call them directly, because they choose which instance gets which
 * call.
 */
let fleet: Fleet;
const FAIR_QUEUE = { maxSlotPerHost: 1, maxWaitersPerHost: 0, globalMaxWaiters: -1, maxWaitMs: 120_000 };
/** What the clients saw. How long anything takes is not judged here. */
const recorder = new HistoryRecorder();
recorder.note({ kind: "facts", at: 0, fairQueue: FAIR_QUEUE });
const send = recordingFetch(recorder);

beforeAll(async () => {
  fleet = await Fleet.start({
    instances: 3,
    poolSize: 10,
    fairQueue: FAIR_QUEUE,
  });
}, 180_000);
afterAll(() => fleet?.stop());

interface Answer {
  readonly result: string;
  readonly queryToken: string;
  readonly slotToken: string;
  readonly fence: number;
  readonly position: number;
  readonly waiters: number;
}

async function call(instance: number, name: string, body: object, signal?: AbortSignal): Promise<Answer> {
  const url = `${fleet.urls[instance]}/api/v0/fairqueue/${name}`;
  const response = await send(url, { method: "POST", body: JSON.stringify(body), ...(signal && { signal }) });
  return (await response.json()) as Answer;
}

/** A first call that does not wait. */
const ask = (instance: number, hostname: string, ipBucket: string) =>
  call(instance, "acquire", { hostname, ipBucket, waitMs: 1 });
const poll = (instance: number, { queryToken }: Answer, signal?: AbortSignal) =>
  call(instance, "acquire", { queryToken }, signal);
const untilEnded = async (instance: number, session: Answer): Promise<Answer> => {
  const answer = await poll(instance, session);
  return answer.result === "pending" ? untilEnded(instance, session) : answer;
};
const release = (instance: number, { slotToken }: Answer) => call(instance, "release", { slotToken });

const keyOf = (hostname: string) => createHash("sha256").update(hostname).digest("hex");

/** How many sessions wait, in the state that all instances share. */
async function waiters(hostname: string): Promise<number> {
  const sql = "SELECT count(*)::integer AS count FROM slotkeeper_record WHERE host = $1 AND kind = 'waiter'";
  return onServer(fleet.dsn, async (client) => (await client.query(sql, [keyOf(hostname)])).rows[0].count as number);
}

test("kill -9 of an instance loses no place of a session, and its waiters stop counting within 5 s", async () => {
  const hostname = "killed.example";
  const held = await ask(1, hostname, "holder");
  const first = await ask(0, hostname, "first");
  // This client does not return.
  await ask(0, hostname, "gone");
  const second = await ask(1, hostname, "second");
  const waitsThere = poll(0, first).catch(() => undefined);
  const waitsElsewhere = untilEnded(1, second);
  await expect.poll(() => waiters(hostname)).toBe(3);
  await fleet.processes[0]?.kill();
  const killedAt = performance.now();
  expect(await waitsThere).toBeUndefined();
  const moved = untilEnded(2, first);
  await expect.poll(() => waiters(hostname), { timeout: 10_000, interval: 100 }).toBe(2);
  expect(performance.now() - killedAt).toBeLessThan(6_000);
  await release(2, held);
  const granted = await moved;
  expect(granted.result).toBe("granted");
  expect(granted.fence).toBeGreaterThan(held.fence);
  await release(1, granted);
  expect((await waitsElsewhere).result).toBe("granted");
  await fleet.launch(0);
});

test("an instance that was paused grants no slot that was granted meanwhile", async () => {
  const hostname = "stopped.example";
  const held = await ask(1, hostname, "holder");
  const first = await ask(0, hostname, "first");
  const second = await ask(1, hostname, "second");
  const leftBehind = poll(0, first);
  const waits = untilEnded(1, second);
  await expect.poll(() => waiters(hostname)).toBe(2);
  fleet.processes[0]?.signal("SIGSTOP");
  await release(1, held);
  const next = await waits;
  expect(next.result).toBe("granted");
  fleet.processes[0]?.signal("SIGCONT");
  // The poll at the paused instance gets no slot of its own: the session gets the next one, at any instance.
  const moved = untilEnded(2, first);
  await expect.poll(() => waiters(hostname)).toBe(1);
  await release(2, next);
  const granted = await moved;
  expect(granted).toMatchObject({ result: "granted" });
  expect(granted.fence).toBeGreaterThan(next.fence);
  const late = await leftBehind;
  if (late.result === "granted") expect(late.slotToken).toBe(granted.slotToken);
});

test("a lock on a host's row by another program stops only that host, however many calls wait for it", async () => {
  const hostname = "locked.example";
  const held = await ask(0, hostname, "holder");
  const waiting = await ask(0, hostname, "waiter");
  const stranger = new Client({ connectionString: fleet.dsn }).on("error", () => {});
  await stranger.connect();
  await stranger.query("BEGIN");
  await stranger.query("SELECT FROM slotkeeper_host WHERE host = $1 FOR UPDATE", [keyOf(hostname)]);
  const piled = Array.from({ length: 500 }, (_, at) => {
    const body = { slotToken: held.slotToken, queryToken: waiting.queryToken };
    return call(0, ["renew", "cancel", "release", "renew"][at % 4] as string, body);
  });
  for (let n = 0; n < 20; n++) {
    const other = await ask(0, `free-${n}.example`, "another");
    expect(other.result).toBe("granted");
    await release(0, other);
  }
  expect((await fetch(`${fleet.urls[0]}/readyz`)).status).toBe(200);
  // They fail after a while, and are repeated.
  const locked = "SELECT count(*)::integer AS count FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
  expect((await stranger.query<{ count: number }>(locked)).rows[0]?.count).toBeLessThanOrEqual(2);
  await stranger.query("ROLLBACK");
  await stranger.end();
  await Promise.all(piled);
  expect((await call(1, "acquire", { hostname, ipBucket: "next", waitMs: 10_000 })).result).toBe("granted");
});

test("no answer of these tests contradicts the documentation", () => {
  recorder.close();
  const { violations, grants } = judgeHistory(recorder.lines);
  expect(violations).toEqual([]);
  expect(grants).toBeGreaterThan(0);
});
