import type { ServiceInstances, ServiceState } from "@slotkeeper/protocol";
import { TestDatabase } from "@slotkeeper/testkit/postgres";
import { afterAll, beforeAll, expect, test } from "vitest";
import { describeFleet, instancesOn, newHost } from "./fleet-cases.ts";
import { type Fixture, startFixture, stopFixture } from "./service-fixture.ts";

/** The service on PostgreSQL, over HTTP: what must hold at every instance, and after any of them dies. */

let database: TestDatabase;

beforeAll(async () => {
  database = await TestDatabase.open();
  observer = await database.connect();
});
afterAll(() => database.close());

const instance = instancesOn(() => ({ mode: "postgres", postgres: { dsn: database.dsn, poolSize: 4 } }));
describeFleet(instance);

let observer: Awaited<ReturnType<TestDatabase["connect"]>>;

async function slotRow(slotToken: string, column: string): Promise<unknown> {
  const { rows } = await observer.query(`SELECT ${column} AS value FROM upstream_slot_pool WHERE token = $1`, [
    slotToken,
  ]);
  return rows[0]?.value;
}

/** When the slot ends; undefined: it is already free. A release may be answered before the database has it. */
async function endOf(slotToken: string): Promise<number | undefined> {
  await expect.poll(() => slotRow(slotToken, "is_released")).not.toBe(false);
  const endsAt = await slotRow(slotToken, "ends_at");
  return endsAt === undefined ? undefined : Number(endsAt);
}

test("a second and a late release do not free the slot of another holder", async () => {
  const [one, two] = await Promise.all([instance({ maxSlotPerHost: 1 }), instance({ maxSlotPerHost: 1 })]);
  const host = newHost();
  const first = await one.take({ ...host, ipBucket: "a" });
  await one.release(first.slotToken);
  const second = await two.take({ ...host, ipBucket: "b" });
  expect((await two.release(first.slotToken)).body.result).toBe("ok");
  expect((await one.release(first.slotToken, host)).body.result).toBe("ok");
  expect((await one.acquire({ ...host, ipBucket: "c", waitMs: 150 })).body.result).toBe("pending");
  expect((await one.call("renew", { slotToken: second.slotToken })).status).toBe(200);
  expect((await one.call("renew", { slotToken: first.slotToken })).status).toBe(410);
});

test("a lease whose holder and instance died is reclaimed by the database's clock", async () => {
  const limits = { maxSlotPerHost: 1, zombieTimeoutSeconds: 1 };
  const host = newHost();
  const first = await instance(limits);
  const lost = await first.take({ ...host, ipBucket: "a" });
  await stopFixture(first);
  const second = await instance(limits);
  const found = await second.take({ ...host, ipBucket: "b" });
  expect(found.fence).toBeGreaterThan(lost.fence);
  expect((await second.call("renew", { slotToken: lost.slotToken })).status).toBe(410);
});

test("the minimum hold is kept after the instance that got the release died", async () => {
  const limits = { maxSlotPerHost: 1, minSlotHoldMs: 700, smoothReleaseIntervalMs: 0 };
  const host = newHost();
  const first = await instance(limits);
  const { slotToken } = await first.take({ ...host, ipBucket: "a" });
  const now = Date.now();
  await first.release(slotToken, { ...host, hitUpstreamAtMs: now, now });
  const endsAt = await endOf(slotToken);
  await stopFixture(first);
  const second = await instance(limits);
  expect((await second.acquire({ ...host, ipBucket: "b", waitMs: 1 })).body.result).toBe("pending");
  const next = await second.take({ ...host, ipBucket: "c" });
  expect(await slotRow(next.slotToken, "granted_at")).toBeGreaterThanOrEqual(endsAt ?? Number.POSITIVE_INFINITY);
});

test("releases are spaced across instances", async () => {
  const limits = { maxSlotPerHost: 3, smoothReleaseIntervalMs: 400 };
  const [one, two] = await Promise.all([instance(limits), instance(limits)]);
  const host = newHost();
  const slots = await Promise.all(["a", "b", "c"].map((ipBucket) => one.take({ ...host, ipBucket })));
  const ends: number[] = [];
  for (const [at, { slotToken }] of slots.entries()) {
    await (at % 2 === 0 ? one : two).release(slotToken, host);
    const endsAt = await endOf(slotToken);
    if (endsAt !== undefined) ends.push(endsAt);
  }
  expect(ends).toHaveLength(2);
  expect((ends[1] as number) - (ends[0] as number)).toBeGreaterThanOrEqual(400);
});

test("the cooldown of a bucket applies at limit one at every instance", async () => {
  const limits = { maxSlotPerHost: 3, maxSlotPerIp: 1, ipCooldownSeconds: 1 };
  const [one, two] = await Promise.all([instance(limits), instance(limits)]);
  const host = { ...newHost(), ipBucket: "a" };
  const { slotToken } = await one.take(host);
  await one.release(slotToken);
  const { body } = await two.acquire({ ...host, waitMs: 200 });
  expect(body).toMatchObject({ result: "pending" });
  expect((await two.take({ ...host, ipBucket: "b" })).result).toBe("granted");
  expect((await two.poll(body.queryToken)).body.result).toBe("granted");
});

test("the breaker opens and half opens for the fleet: one probe, and its success admits all waiters", async () => {
  // Half open from the third to the sixth second, long enough for a slow machine.
  const breaker = { openSeconds: 3, consecutiveErrors: 3 };
  const [one, two] = await Promise.all([instance({ breaker }), instance({ breaker })]);
  const host = newHost();
  for (let count = 0; count < 3; count++) await one.call("report", { ...host, status: 503 });
  await expect.poll(async () => (await two.acquire(host)).body.throttleCode).toBe(503);
  await new Promise((resolve) => setTimeout(resolve, 3_050));
  const tries = await Promise.all(
    [one, two, one, two].map((fixture, at) => fixture.acquire({ ...host, ipBucket: `b${at}`, waitMs: 1_000 })),
  );
  const granted = tries.filter(({ body }) => body.result === "granted");
  expect(granted).toHaveLength(1);
  expect(tries.filter(({ body }) => body.result === "pending")).toHaveLength(3);
  await two.release(granted[0]?.body.slotToken ?? "", { ...host, status: 200 });
  expect((await one.take({ ...host, ipBucket: "z" })).result).toBe("granted");
});

test("the first current user of a named semaphore sets its capacity for the fleet", async () => {
  const [one, two] = await Promise.all([instance(), instance()]);
  const host = { hostname: `sem:${newHost().hostname}` };
  const slots = await Promise.all([one.take({ ...host, limit: 2 }), one.take({ ...host, limit: 2 })]);
  expect((await two.acquire({ ...host, limit: 3, waitMs: 5_000 })).status).toBe(409);
  expect((await two.acquire({ ...host, limit: 2, waitMs: 150 })).body.result).toBe("pending");
  expect(slots.map(({ result }) => result)).toEqual(["granted", "granted"]);
});

test("limits, breaker and revoked slots that an operator sets at one instance apply to all, and each instance shows the others", async () => {
  const [one, two] = await Promise.all([instance({ maxSlotPerHost: 1 }), instance({ maxSlotPerHost: 1 })]);
  const host = newHost();
  const at = `/api/v0/hosts/${host.hostname}`;
  const post = (path: string, body: object) => one.request("POST", path, { body: JSON.stringify(body) });
  const stateOf = async (fixture: Fixture) =>
    (JSON.parse((await fixture.request("GET", `/api/v0/state?host=${host.hostname}`)).text) as ServiceState).hosts[0];

  const slot = await one.take({ ...host, ipBucket: "a" });
  const { body: waiting } = await two.acquire({ ...host, ipBucket: "b", waitMs: 20 });
  expect((await post(at, { maxSlotPerHost: 2 })).status).toBe(204);
  expect((await two.poll(waiting.queryToken)).body.result).toBe("granted");
  const state = await stateOf(two);
  expect(state).toMatchObject({ limit: 2, inFlight: 2, limits: { maxSlotPerHost: { value: 2, origin: "live" } } });

  const id = state?.slots.find(({ slot: name }) => name.endsWith(`.${slot.fence}`))?.slot;
  expect((await two.request("DELETE", `/api/v0/slots/${id}`)).status).toBe(204);
  expect((await one.call("renew", { slotToken: slot.slotToken })).status).toBe(410);

  expect((await post(`${at}/breaker`, { state: "open" })).status).toBe(204);
  await expect.poll(async () => (await two.acquire({ ...host, ipBucket: "c" })).body.result).toBe("throttled");
  expect((await post(`${at}/breaker`, { state: "closed" })).status).toBe(204);
  await expect.poll(async () => (await two.acquire({ ...host, ipBucket: "d" })).body.result).toBe("pending");

  const { instances, isFleet } = JSON.parse((await two.request("GET", "/api/v0/instances")).text) as ServiceInstances;
  expect(isFleet).toBe(true);
  expect(instances.map(({ address }) => address)).toEqual(expect.arrayContaining([one.url, two.url]));
});

test("without its database the service is not ready, keeps callers pending, and continues when it is back", async () => {
  const own = await TestDatabase.open();
  const backend = { mode: "postgres", postgres: { dsn: own.dsn, poolSize: 4 } };
  const fixture = await startFixture({ config: { backend, fairQueue: { pollIntervalMs: 100 } } });
  expect((await fixture.request("GET", "/readyz")).status).toBe(200);
  const client = await database.connect();
  const name = new URL(own.dsn).pathname.slice(1);
  await client.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`);
  await client.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", [name]);
  expect((await fixture.request("GET", "/readyz")).status).toBe(503);
  const { body } = await fixture.acquire({ ...newHost(), waitMs: 300 });
  expect(body).toMatchObject({ result: "pending" });
  await client.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS true`);
  expect((await fixture.poll(body.queryToken)).body.result).toBe("granted");
  expect((await fixture.request("GET", "/readyz")).status).toBe(200);
  await stopFixture(fixture);
  await own.close();
});

test("a schema that was never migrated is refused at the start, with a message that says what to do", async () => {
  const empty = await TestDatabase.open({ isEmpty: true });
  const backend = { mode: "postgres", postgres: { dsn: empty.dsn } };
  await expect(startFixture({ config: { backend } })).rejects.toThrow("slotkeeper migrate");
  await empty.close();
});
