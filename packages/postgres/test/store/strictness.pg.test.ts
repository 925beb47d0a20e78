import { PostgresStore } from "@slotkeeper/postgres";
import { TestDatabase } from "@slotkeeper/testkit/postgres";
import { HostUnderTest } from "@slotkeeper/testkit/store-conformance";
import type { Client } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PLANTED, violations } from "./audit.ts";
import { race } from "./race.ts";

/** Sixteen connections of four instances. Slots are counted twice: in SQL by an auditor, and outside by their holders. */

const INSTANCES = 4;
const CONNECTIONS = 16;
const GRANTS_EACH = process.env["SLOTKEEPER_LONG"] === "1" ? 40 : 3;
let database: TestDatabase;
let auditor: Client;
let stores: PostgresStore[];

beforeAll(async () => {
  database = await TestDatabase.open();
  auditor = await database.connect();
  const options = { dsn: database.dsn, poolSize: CONNECTIONS / INSTANCES };
  stores = await Promise.all(Array.from({ length: INSTANCES }, () => PostgresStore.open(options)));
});
afterAll(async () => {
  await Promise.all(stores.map((store) => store.close()));
  await database.close();
});

test("P1, P2: limits and tails hold with sixteen connections, from the first commit on", async () => {
  const options = { stores, host: "limits", slots: 3, workers: CONNECTIONS, grantsEach: GRANTS_EACH, buckets: 5 };
  const result = await race(options, auditor);
  expect(result.seen).toEqual([]);
  expect(result.mostHeld).toBeLessThanOrEqual(3);
  expect(result.mostOfBucket).toBe(1);
  expect(result.conflicts).toBeGreaterThanOrEqual(CONNECTIONS - 1);
});

test("P3: hosts that are forgotten while others use them keep limits and fences", async () => {
  const options = { stores, host: "forgotten", slots: 2, workers: 8, grantsEach: GRANTS_EACH, buckets: 5 };
  let isOver = false;
  const forget = async () => {
    while (!isOver) await stores[0]?.cleanup({ idleMs: -1 });
  };
  const forgetting = forget();
  const result = await race(options, auditor);
  isOver = true;
  await forgetting;
  expect(result.seen).toEqual([]);
  expect(result.mostHeld).toBeLessThanOrEqual(2);
});

describe("the auditor finds", () => {
  beforeAll(async () => {
    const [store] = stores as [PostgresStore];
    const host = await HostUnderTest.on({ store, other: store, pass: async () => {}, close: async () => {} });
    Object.assign(host, { host: "h" });
    for (let at = 0; at < 3; at++) await host.accept();
    await host.grant("a", "b");
  });

  test.each(Object.entries(PLANTED))("%s", async (name, statement) => {
    const client = await database.connect();
    await client.query("BEGIN");
    expect(await violations(client)).toEqual([]);
    await client.query(statement);
    expect(await violations(client)).toContain(name);
    await client.query("ROLLBACK");
  });
});

/** The name of a rule, its text in a function, and the text that replaces it. */
type Rule = readonly [name: string, rule: string, instead: string];

/** Removes rules and runs the race. The replacement may pause, so that others can commit in between. */
async function raceWithout(...rules: readonly Rule[]): Promise<string> {
  const broken = await TestDatabase.open();
  const client = await broken.connect();
  for (const [name, rule, instead] of rules) {
    const { rows } = await client.query<{ text: string }>("SELECT pg_get_functiondef($1::regproc) AS text", [name]);
    const text = rows[0]?.text ?? "";
    const changed = text.replaceAll(rule, instead);
    expect(changed).not.toBe(text);
    await client.query(changed);
  }
  const unsafe = await Promise.all([4, 4].map((poolSize) => PostgresStore.open({ dsn: broken.dsn, poolSize })));
  // A race may keep the limits by chance, so it runs several times, until it breaks one.
  let outcome = "kept";
  for (let attempt = 0; attempt < 8 && outcome === "kept"; attempt++) {
    const options = { stores: unsafe, host: `limits-${attempt}`, slots: 2, workers: 8, grantsEach: 5, buckets: 3 };
    outcome = await race(options, client).then(
      ({ mostHeld, mostOfBucket, seen }) => (mostHeld > 2 || mostOfBucket > 1 || seen.length > 0 ? "broken" : "kept"),
      () => "broken",
    );
  }
  await Promise.all(unsafe.map((store) => store.close()));
  await broken.close();
  return outcome;
}

describe("the race breaks a limit", () => {
  test("if the tag is compared before the host's row is locked", async () => {
    const comparison = ["slotkeeper_refusal", "WHEN p_stored IS DISTINCT FROM p_base THEN 'conflict'", ""] as const;
    const earlier = "WHERE host = p_host AND (SELECT o.tag FROM slotkeeper_host o WHERE o.host = p_host) = p_base";
    const swap = ["slotkeeper_commit", "WHERE host = p_host\n", `${earlier} AND pg_sleep(0.003)::text = ''\n`] as const;
    expect(await raceWithout(comparison, swap)).toBe("broken");
  });

  test("without the comparison of the tag: the host's limit still holds, the bucket's does not", async () => {
    const comparison = ["slotkeeper_refusal", "WHEN p_stored IS DISTINCT FROM p_base THEN 'conflict'", ""] as const;
    expect(await raceWithout(comparison)).toBe("broken");
  });
});
