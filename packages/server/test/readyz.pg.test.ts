import { readFileSync } from "node:fs";
import { TestDatabase } from "@slotkeeper/testkit/postgres";
import { TcpProxy } from "@slotkeeper/testkit/proxy";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Fixture, startFixture } from "./service-fixture.ts";

/** `/readyz` on PostgreSQL: 503 with the reason within two seconds, and 200 again by itself. */

const WITHIN_MS = 2_000;
const ROLES = readFileSync(new URL("../../postgres/sql/roles.sql", import.meta.url), "utf8");
const ROLE = "readyz_service";

let database: TestDatabase;
let owner: Awaited<ReturnType<TestDatabase["connect"]>>;
let proxy: TcpProxy;
let fixture: Fixture;

beforeAll(async () => {
  database = await TestDatabase.open();
  owner = await database.openSession();
  await owner.query(`${ROLES}; CREATE ROLE ${ROLE} LOGIN PASSWORD 'p' IN ROLE slotkeeper_service`);
  proxy = await TcpProxy.to(database.directDsn);
});
afterAll(async () => {
  await proxy.close();
  await owner.query(`DROP OWNED BY ${ROLE}; DROP ROLE ${ROLE}; DROP OWNED BY slotkeeper_service`);
  await database.close();
});

beforeEach(async () => {
  const dsn = new URL(proxy.url);
  dsn.username = ROLE;
  dsn.password = "p";
  const backend = { mode: "postgres", postgres: { dsn: dsn.href, poolSize: 4 } };
  fixture = await startFixture({ config: { backend, fairQueue: { pollIntervalMs: 100, pollWindowMs: 400 } } });
  await expect.poll(status).toBe(200);
});

const status = async () => (await fixture.request("GET", "/readyz")).status;

/** Asks until the answer matches, and fails after two seconds. */
async function turned(to: object): Promise<{ detail: string }> {
  const startedAt = performance.now();
  for (;;) {
    const { status, body } = await fixture.request("GET", "/readyz");
    const found = { ...body, status };
    try {
      expect(found).toMatchObject(to);
      return found;
    } catch (error) {
      if (performance.now() - startedAt > WITHIN_MS) throw error;
    }
  }
}

async function metric(name: string): Promise<number> {
  const { text } = await fixture.request("GET", "/metrics");
  const line = text.split("\n").find((one) => one.startsWith(`${name} `));
  return Number(line?.split(" ").at(-1));
}

const notReady = (reason: string) => ({ status: 503, code: "NOT_READY", reason });

const FAULTS: { title: string; reason: string; strike: () => unknown; heal: () => unknown }[] = [
  {
    title: "refuses connections",
    reason: "STORE_UNREACHABLE",
    strike: () => proxy.refuse(),
    heal: () => proxy.accept(),
  },
  {
    title: "does not answer, as while it is paused",
    reason: "STORE_SILENT",
    strike: () => proxy.silence(),
    heal: () => proxy.resume(),
  },
  {
    title: "lets the service call everything except a commit",
    reason: "STORE_FORBIDDEN",
    strike: () => owner.query("REVOKE EXECUTE ON FUNCTION slotkeeper_commit FROM slotkeeper_service"),
    heal: () => owner.query("GRANT EXECUTE ON FUNCTION slotkeeper_commit TO slotkeeper_service"),
  },
  {
    title: "has a different schema number",
    reason: "STORE_SCHEMA",
    strike: () => owner.query(schemaNumber(2)),
    heal: () => owner.query(schemaNumber(1)),
  },
  {
    title: "accepts no writes",
    reason: "STORE_READ_ONLY",
    strike: () => readOnly("on"),
    heal: () => readOnly("off"),
  },
];

/** Applies to new sessions, so the existing ones are ended. */
async function readOnly(value: "on" | "off"): Promise<void> {
  await owner.query(`ALTER ROLE ${ROLE} SET default_transaction_read_only = ${value}`);
  await owner.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1", [ROLE]);
}

function schemaNumber(number: number): string {
  return `CREATE OR REPLACE FUNCTION slotkeeper_schema_number() RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT ${number}'`;
}

describe("a database that", () => {
  it.each(FAULTS)(
    "$title is 503 $reason within two seconds; callers wait and continue",
    async ({ reason, strike, heal }) => {
      const host = { hostname: `${reason.toLowerCase()}.example.com` };
      await strike();
      const { detail } = await turned(notReady(reason));
      // A sentence that any caller may read: no addresses, names or passwords.
      expect(detail).not.toMatch(/127\.0\.0\.1|readyz_service/);
      expect(await metric(`slotkeeper_not_ready{reason="${reason}"}`)).toBe(1);
      const { body } = await fixture.acquire({ ...host, waitMs: 300 });
      expect(body.result).toBe("pending");
      await expect
        .poll(async () => (await fixture.poll(body.queryToken)).body, { timeout: 8_000 })
        .toMatchObject({ result: "pending", blockedBy: "store" });
      await heal();
      await turned({ status: 200 });
      await expect
        .poll(async () => (await fixture.poll(body.queryToken)).body.result, { timeout: 8_000 })
        .toBe("granted");
      expect(await metric(`slotkeeper_not_ready{reason="${reason}"}`)).toBe(0);
      expect(fixture.logged.join("")).toContain(`"msg":"not ready","reason":"${reason}"`);
    },
  );
});

it("failing commits are reported even if no right is missing: only they show a full disk", async () => {
  await owner.query(`CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE disk_full USING MESSAGE = 'could not extend file'; END $$`);
  await owner.query("CREATE TRIGGER no_room BEFORE INSERT OR UPDATE ON slotkeeper_host EXECUTE FUNCTION no_room()");
  const { body } = await fixture.acquire({ hostname: "full.example.com", waitMs: 100 });
  await turned(notReady("STORE_FULL"));
  await owner.query("DROP FUNCTION no_room CASCADE");
  await turned({ status: 200 });
  expect((await fixture.poll(body.queryToken)).body.result).toBe("granted");
});

it("a lock of another program on one host's row leaves the service ready", async () => {
  const host = { hostname: "locked.example.com" };
  const { slotToken } = await fixture.take(host);
  const stranger = await database.openSession();
  await stranger.query("BEGIN; SELECT FROM slotkeeper_host FOR UPDATE");
  const calls = [fixture.release(slotToken), fixture.acquire({ ...host, ipBucket: "b", waitMs: 400 })];
  await Promise.all(calls);
  expect(await status()).toBe(200);
  expect((await fixture.take({ hostname: "other.example.com" })).result).toBe("granted");
  await stranger.query("ROLLBACK");
});

describe("a listening connection", () => {
  it("that is silent degrades `/readyz` within two seconds, which stays 200, and recovers by itself", async () => {
    const listening = await TcpProxy.to(database.directDsn);
    const postgres = { dsn: database.directDsn, listenDsn: listening.url };
    fixture = await startFixture({ config: { backend: { postgres } } });
    await expect.poll(() => metric("slotkeeper_listener_up")).toBe(1);
    listening.silence();
    await turned({ status: 200, degraded: [{ reason: "LISTENER_DOWN" }] });
    expect(await metric("slotkeeper_listener_up")).toBe(0);
    expect(await metric("slotkeeper_listener_losses_total")).toBeGreaterThan(0);
    listening.resume();
    await expect
      .poll(async () => (await fixture.request("GET", "/readyz")).text, { timeout: 10_000 })
      .toBe('{"status":"ok"}');
    expect(await metric("slotkeeper_listener_up")).toBe(1);
    await listening.close();
  });
});
