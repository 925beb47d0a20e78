import { migrate, migrationScript, PostgresStore } from "@slotkeeper/postgres";
import { TestDatabase } from "@slotkeeper/testkit/postgres";
import { Client } from "pg";
import { afterAll, expect, test, vi } from "vitest";
import { Churn } from "../store/churn.ts";
import { OPEN_LIMITS } from "../store/race.ts";
import { leftInSession } from "./left-in-session.ts";

/** What lets a transaction pooler sit in between (D1 of the store, M4 of migrate), shown in the sessions themselves. */

const database = await TestDatabase.open();
afterAll(() => database.close());

/** A little of everything that a service asks of its store. */
async function useStore(store: PostgresStore): Promise<void> {
  const policy = { ...OPEN_LIMITS, slots: 4, cooldownMs: 1 };
  const about = { url: "http://one.example" };
  await new Churn(store, policy).round("h");
  await store.checkThrottle({ host: "h", policy });
  await store.report({ host: "h", policy, status: 503 });
  await store.operate({ kind: "limits", host: "h", policy, limits: { slots: 2, slotsPerBucket: 1 } });
  await store.operate({ kind: "breaker", host: "h", policy, isOpen: true });
  await store.operate({ kind: "revoke", slot: 1 });
  await store.announce({ instance: "one", ttlMs: 1_000, about });
  await Promise.all([store.snapshot(), store.totals(), store.hostKeys(), store.instances(), store.tokenKeys("k")]);
  await store.cleanup({ waiterTtlMs: 1, resetSmoothing: true });
  expect(await store.isReady()).toBe(true);
}

test("D1: no call of the store leaves anything in its session", async () => {
  const queries = vi.spyOn(Client.prototype, "query");
  const store = await PostgresStore.open({ dsn: database.directDsn, poolSize: 1 });
  await useStore(store);
  const sessions = [...new Set(queries.mock.contexts as Client[])];
  expect(sessions).toHaveLength(1);
  expect(await leftInSession(sessions[0] as Client)).toEqual([]);
  await store.close();
});

test("M4: no migration leaves anything in its session", async () => {
  await using empty = await TestDatabase.open({ isEmpty: true });
  const queries = vi.spyOn(Client.prototype, "query");
  const left: Promise<string[]>[] = [];
  const look = () => left.push(leftInSession(queries.mock.contexts.at(-1) as Client));
  const applied = await migrate({ dsn: empty.directDsn, onApplied: look });
  expect(await Promise.all(left)).toEqual(applied.map(() => []));
});

test("M4: one session may migrate one schema after the other", async () => {
  await using empty = await TestDatabase.open({ isEmpty: true });
  const client = await empty.openSession();
  for (const schema of ["one", "two"]) await client.query(migrationScript(schema));
  expect(await leftInSession(client)).toEqual([]);
});

test("whatever is left in a session would be seen", async () => {
  const client = await database.openSession();
  await client.query(`
    SET lock_timeout = 1000;
    PREPARE kept AS SELECT 1;
    DECLARE open_end CURSOR WITH HOLD FOR SELECT 1;
    LISTEN freed;
    SELECT pg_advisory_lock(7);
    CREATE TEMP TABLE kept (n int);
    CREATE FUNCTION pg_temp.kept() RETURNS int LANGUAGE sql AS 'SELECT 1'`);
  expect(await leftInSession(client)).toEqual([
    "advisory lock 7",
    "channel freed",
    "cursor open_end",
    "setting lock_timeout",
    "statement kept",
    expect.stringMatching(/^temporary function pg_temp_\d+\.kept\(\)$/),
    "temporary table kept",
  ]);
});
