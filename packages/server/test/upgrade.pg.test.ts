import { migrate } from "@slotkeeper/postgres";
import { readMigrations } from "@slotkeeper/postgres/internals";
import { TestDatabase } from "@slotkeeper/testkit/postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Fixture, startFixture, stopFixture } from "./service-fixture.ts";

/** What docs/guides/postgres.md promises about an update: which one is rolling, and which needs a short stop. */

let database: TestDatabase;
let owner: Awaited<ReturnType<TestDatabase["connect"]>>;

beforeAll(async () => {
  database = await TestDatabase.open();
  owner = await database.connect();
});
afterAll(() => database.close());

function instance(): Promise<Fixture> {
  const backend = { startWaitSeconds: 0, postgres: { dsn: database.dsn, poolSize: 4 } };
  return startFixture({
    config: { backend, fairQueue: { pollIntervalMs: 100, pollWindowMs: 1_000, maxSlotPerHost: 1 } },
  });
}

const readiness = async (fixture: Fixture) => {
  const { status, text } = await fixture.request("GET", "/readyz");
  return [status, (JSON.parse(text) as { reason?: string }).reason];
};

/** A slot that is held, and a session that waits for it, from before the update. */
async function begun(fixture: Fixture, hostname: string) {
  const { slotToken } = await fixture.take({ hostname, ipBucket: "holder" });
  const { body } = await fixture.acquire({ hostname, ipBucket: "waiter", waitMs: 50 });
  expect(body.result).toBe("pending");
  return { slotToken, queryToken: body.queryToken };
}

describe("an update with the same schema", () => {
  it("is rolling: instances are replaced one after the other, and slots and places are kept", async () => {
    const [one, two] = await Promise.all([instance(), instance()]);
    const { slotToken, queryToken } = await begun(one, "rolling.example.com");
    await stopFixture(one);
    const three = await instance();
    expect((await two.poll(queryToken)).body.result).toBe("pending");
    await stopFixture(two);
    const waiting = three.poll(queryToken);
    await three.release(slotToken);
    expect((await waiting).body.result).toBe("granted");
  });
});

describe("an update with more migrations and the same schema number", () => {
  const later = { number: 9_999, name: "of_tomorrow", file: "9999_of_tomorrow.sql", checksum: "x", sql: "SELECT 1;" };
  it("is rolling, too: running instances continue after `migrate`; an instance of the old version no longer starts, and reports why", async () => {
    const old = await instance();
    const { slotToken, queryToken } = await begun(old, "migrated.example.com");
    await migrate({ dsn: database.dsn, migrations: [...readMigrations(), later] });
    expect(await readiness(old)).toEqual([200, undefined]);
    await expect(instance()).rejects.toMatchObject({ code: "SCHEMA_NEW" });
    await old.release(slotToken);
    expect((await old.poll(queryToken)).body.result).toBe("granted");
    await owner.query("DELETE FROM slotkeeper_migration WHERE number = 9999");
  });
});

describe("an update with a different schema number", () => {
  const setNumber = (number: number) =>
    owner.query(
      `CREATE OR REPLACE FUNCTION slotkeeper_schema_number() RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT ${number}'`,
    );

  it("needs a short stop: old instances grant nothing and are not ready; slots and places are kept for the new ones", async () => {
    const old = await instance();
    const { slotToken, queryToken } = await begun(old, "stopped.example.com");
    await setNumber(2);
    await expect.poll(() => readiness(old)).toEqual([503, "STORE_SCHEMA"]);
    const { body } = await old.acquire({ hostname: "new.example.com", waitMs: 300 });
    expect(body.result).toBe("pending");
    // The stop does not wait for calls that can never be sent.
    await stopFixture(old, { graceMs: 0, deadlineMs: 100 });
    // The tests run only one version: setting the number back simulates the start of the new one.
    await setNumber(1);
    const next = await instance();
    expect((await next.call("renew", { slotToken })).status).toBe(200);
    const waiting = next.poll(queryToken);
    await next.release(slotToken);
    expect((await waiting).body.result).toBe("granted");
  });
});
