import { createHash } from "node:crypto";
import { Fleet } from "@slotkeeper/testkit/fleet";
import { HistoryRecorder, judgeHistory, recordingFetch } from "@slotkeeper/testkit/history";
import { onServer } from "@slotkeeper/testkit/postgres";
import { afterAll, beforeAll, expect, test } from "vitest";

/**
 * Stops one real instance of three with SIGSTOP for ten seconds. A slot that is offered to its waiters is lost to the
 * others while the offer lasts. So the database records every offer: how many the stopped instance got, and how long
 * each lasted. The test judges these numbers, not the speed of the machine.
 */
const HOSTNAME = "stopped.example";
const HOST = createHash("sha256").update(HOSTNAME).digest("hex");
const STOPPED_MS = 10_000;
const OFFER_MS = 50;
const SLOTS = 2;

let fleet: Fleet;
const FAIR_QUEUE = { maxSlotPerHost: SLOTS, maxWaitersPerHost: 0, globalMaxWaiters: -1, maxWaitMs: 120_000 };
/** What the clients saw. How long anything takes is not judged here. */
const recorder = new HistoryRecorder();
recorder.note({ kind: "facts", at: 0, fairQueue: FAIR_QUEUE });
const send = recordingFetch(recorder);

beforeAll(async () => {
  fleet = await Fleet.start({ instances: 3, fairQueue: FAIR_QUEUE });
  await onServer(fleet.dsn, (client) =>
    client.query(`
      CREATE TABLE offers (at timestamptz NOT NULL DEFAULT clock_timestamp(), data jsonb NOT NULL);
      CREATE FUNCTION note_offer() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO offers (data) VALUES (NEW.data); RETURN NEW; END $$;
      CREATE TRIGGER note_offer AFTER INSERT ON slotkeeper_record FOR EACH ROW WHEN (NEW.kind = 'offer')
        EXECUTE FUNCTION note_offer()`),
  );
}, 180_000);
afterAll(() => fleet?.stop());

interface Answer {
  readonly result: string;
  readonly queryToken: string;
  readonly slotToken: string;
  readonly fence: number;
}

async function call(instance: number, name: string, body: object): Promise<Answer> {
  const url = `${fleet.urls[instance]}/api/v0/fairqueue/${name}`;
  return (await (await send(url, { method: "POST", body: JSON.stringify(body) })).json()) as Answer;
}

/** Acquires and gives the slot back. */
async function use(instance: number, ipBucket: string): Promise<Answer> {
  const answer = await acquire(instance, ipBucket);
  await call(1, "release", { slotToken: answer.slotToken });
  return answer;
}

/** Repeats the call until it is granted, always at the same instance. */
async function acquire(instance: number, ipBucket: string): Promise<Answer> {
  let answer = await call(instance, "acquire", { hostname: HOSTNAME, ipBucket, waitMs: 5_000 });
  while (answer.result === "pending") answer = await call(instance, "acquire", { queryToken: answer.queryToken });
  return answer;
}

async function query<T>(sql: string): Promise<T[]> {
  return onServer(fleet.dsn, async (client) => (await client.query(sql)).rows as T[]);
}

interface Offer {
  readonly instance: string;
  readonly offeredAt: number;
  readonly lapsesAt: number;
}

/** Instances that have waiters at the host. */
const waiting = async () =>
  query<{ instance: string; count: number }>(`SELECT data ->> 'instance' AS instance, count(*)::integer AS count
    FROM slotkeeper_record WHERE host = '${HOST}' AND kind = 'waiter' GROUP BY 1`);

test("a stopped instance costs each slot one offer of 50 ms, the others continue, and no slot is granted twice", async () => {
  const held = [await acquire(1, "h1"), await acquire(1, "h2")];
  const left = ["s1", "s2", "s3"].map((bucket) => use(0, bucket));
  await expect.poll(waiting, { timeout: 10_000 }).toMatchObject([{ count: 3 }]);
  const name = (await waiting())[0]?.instance ?? "";
  const others = ["o1", "o2", "o3", "o4"].map((bucket, at) => () => use(1 + (at % 2), bucket));
  const granted: Answer[] = [];
  let isOver = false;
  fleet.processes[0]?.signal("SIGSTOP");
  const stoppedAt = performance.now();
  const loops = others.map(async (next) => {
    while (!isOver) granted.push(await next());
  });
  // They wait behind the sessions of the stopped instance, which arrived first.
  await expect.poll(async () => (await waiting()).length, { timeout: 10_000 }).toBe(3);
  for (const { slotToken } of held) await call(1, "release", { slotToken });
  await new Promise((resolve) => setTimeout(resolve, STOPPED_MS - (performance.now() - stoppedAt)));
  const [until] = await query<{ now: number }>("SELECT slotkeeper_now() AS now");
  const grantedMeanwhile = granted.length;
  fleet.processes[0]?.signal("SIGCONT");
  const late = await Promise.all(left);
  isOver = true;
  await Promise.all(loops);

  const offers = (await query<{ data: Offer }>("SELECT data FROM offers ORDER BY at")).map(({ data }) => data);
  const toStopped = offers.filter(({ instance, offeredAt }) => instance === name && offeredAt < (until?.now ?? 0));
  expect(toStopped.length).toBeGreaterThan(0);
  expect(toStopped.length).toBeLessThanOrEqual(SLOTS);
  for (const { offeredAt, lapsesAt } of toStopped) expect(lapsesAt - offeredAt).toBeLessThanOrEqual(OFFER_MS);
  expect(grantedMeanwhile).toBeGreaterThan(20);
  // Its sessions still have their places, and got a slot each when it was back.
  expect(late.map(({ result }) => result)).toEqual(["granted", "granted", "granted"]);
  const fences = [...held, ...granted, ...late].map(({ fence }) => fence);
  expect(new Set(fences).size).toBe(fences.length);
  const tokens = [...held, ...granted, ...late].map(({ slotToken }) => slotToken);
  expect(new Set(tokens).size).toBe(tokens.length);
});

test("no answer of these tests contradicts the documentation", () => {
  recorder.close();
  const { violations, grants } = judgeHistory(recorder.lines);
  expect(violations).toEqual([]);
  expect(grants).toBeGreaterThan(0);
});
