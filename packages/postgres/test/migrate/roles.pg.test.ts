import { readFileSync } from "node:fs";
import { PostgresStore } from "@slotkeeper/postgres";
import { TestDatabase } from "@slotkeeper/testkit/postgres";
import { HostUnderTest } from "@slotkeeper/testkit/store-conformance";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const ROLES = readFileSync(new URL("../../sql/roles.sql", import.meta.url), "utf8");
const NAMES = ["slotkeeper_service", "slotkeeper_reader", "slotkeeper_postgrest"] as const;
type Role = (typeof NAMES)[number];

const database = await TestDatabase.open();
const owner = await database.connect();
const before = await owner.query("SELECT rolname FROM pg_roles WHERE rolname = ANY ($1)", [NAMES]);

beforeAll(async () => {
  await owner.query(ROLES);
});
afterAll(async () => {
  const existed = new Set(before.rows.map(({ rolname }) => rolname as string));
  for (const role of NAMES) {
    await owner.query(`DROP OWNED BY ${role}`);
    if (!existed.has(role)) await owner.query(`DROP ROLE ${role}`);
  }
  await database.close();
});

/** Runs a statement as that role, to test its actual rights. */
async function as(role: Role, sql: string): Promise<unknown> {
  const client = await database.openSession({ options: `-c role=${role}` });
  return (await client.query(sql)).rows;
}

const READY = "SELECT slotkeeper_ready(1, '{}')";
const TRY = "SELECT status FROM download_try_acquire_slot('', 'roles.example', 'b', 0, 5, 1)";

describe("nothing is granted to PUBLIC", () => {
  it("not for any function, table, column, sequence or type of ours", async () => {
    const { rows } = await owner.query(`
      SELECT 'function ' || p.oid::regprocedure AS what FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
      WHERE p.pronamespace = 'public'::regnamespace AND a.grantee = 0
      UNION ALL
      SELECT 'relation ' || c.oid::regclass FROM pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a
      WHERE c.relnamespace = 'public'::regnamespace AND a.grantee = 0
      UNION ALL
      SELECT 'type ' || t.oid::regtype FROM pg_type t JOIN pg_class c ON c.oid = t.typrelid,
        aclexplode(coalesce(t.typacl, acldefault('T', t.typowner))) a
      WHERE t.typnamespace = 'public'::regnamespace AND c.relkind = 'c' AND a.grantee = 0`);
    expect(rows).toEqual([]);
  });
});

describe("roles.sql", () => {
  it("can be run again", async () => {
    await owner.query(ROLES);
  });

  it("reports what is missing if nothing was migrated", async () => {
    await using empty = await TestDatabase.open({ isEmpty: true });
    const client = await empty.connect();
    await expect(client.query(ROLES)).rejects.toThrow(/slotkeeper migrate/);
  });
});

describe("slotkeeper_service", () => {
  it("runs the store, with no right to any table except the list of migrations", async () => {
    const dsn = new URL(database.directDsn);
    dsn.searchParams.set("options", "-c role=slotkeeper_service");
    const store = await PostgresStore.open({ dsn: dsn.href, poolSize: 1 });
    const host = await HostUnderTest.on({
      store,
      other: store,
      pass: () => Promise.resolve(),
      close: () => store.close(),
    });
    await host.grant("a");
    expect(await host.names()).toEqual(["lease slot_a"]);
    await store.beat({ instance: "one", ttlMs: 1_000, about: {}, hosts: [[host.host, host.tag]] });
    expect([...(await store.peek([host.host])).keys()]).toEqual(await store.hostKeys());
    expect(await store.totals()).toMatchObject({ hosts: 1, inFlight: 1 });
    expect(await store.tokenKeys("key")).toEqual(["key"]);
    expect((await store.cleanup({ idleMs: 1 })).failures).toEqual([]);
    expect((await store.health()).isReady).toBe(true);
    await store.close();
    await expect(as("slotkeeper_service", "SELECT FROM upstream_slot_pool")).rejects.toThrow(/permission denied/);
    await expect(as("slotkeeper_service", "DELETE FROM slotkeeper_migration")).rejects.toThrow(/permission denied/);
    await expect(as("slotkeeper_service", "SELECT slotkeeper_renumber(1)")).rejects.toThrow(/permission denied/);
  });
});

describe("health", () => {
  const open = () => {
    const dsn = new URL(database.directDsn);
    dsn.searchParams.set("options", "-c role=slotkeeper_service");
    return PostgresStore.open({ dsn: dsn.href, poolSize: 1 });
  };

  it.each([
    "EXECUTE ON FUNCTION slotkeeper_commit",
    "EXECUTE ON FUNCTION slotkeeper_forget_rows",
    "EXECUTE ON FUNCTION slotkeeper_ready",
  ])("is false if only the service's %s is missing", async (right) => {
    const store = await open();
    await owner.query(`REVOKE ${right} FROM slotkeeper_service`);
    expect((await store.health()).isReady).toBe(false);
    await owner.query(`GRANT ${right} TO slotkeeper_service`);
    expect((await store.health()).isReady).toBe(true);
    await store.close();
  });

  it.each(["UPDATE ON upstream_slot_pool", "INSERT ON slotkeeper_ring"])(
    "is false if only the owner's %s is missing",
    async (right) => {
      const role = `table_owner_${Date.now()}`;
      await owner.query(
        `CREATE ROLE ${role}; GRANT USAGE ON SCHEMA public TO ${role}; GRANT ALL ON ALL TABLES IN SCHEMA public TO ${role};
        GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO ${role}; GRANT ALL ON ALL FUNCTIONS IN SCHEMA public TO ${role}`,
      );
      await owner.query(`BEGIN; ALTER FUNCTION slotkeeper_commit OWNER TO ${role}; REVOKE ${right} FROM ${role}`);
      try {
        await owner.query("SAVEPOINT asked");
        await expect(owner.query(READY)).rejects.toThrow(
          `permission denied for ${right.replace(" ON ", " on table ")}`,
        );
        await owner.query("ROLLBACK TO asked");
        await owner.query(`GRANT ${right} TO ${role}`);
        await owner.query(READY);
      } finally {
        await owner.query(`ROLLBACK; DROP OWNED BY ${role}; DROP ROLE ${role}`);
      }
    },
  );

  it("is false on a read-only database", async () => {
    const client = await database.openSession();
    await client.query("SET default_transaction_read_only = on");
    await expect(client.query(READY)).rejects.toMatchObject({ code: "25006" });
  });
});

describe("slotkeeper_reader", () => {
  it("reads tables and sums", async () => {
    await as("slotkeeper_reader", "SELECT id, hostname_pattern, status, ends_at FROM upstream_slot_pool");
    for (const table of [
      "upstream_ip_cooldown",
      "upstream_ip_queue_depth",
      '"THROTTLE_PROTECTION"',
      "slotkeeper_host",
      "slotkeeper_record",
    ]) {
      await as("slotkeeper_reader", `SELECT * FROM ${table}`);
    }
    await as("slotkeeper_reader", "SELECT slotkeeper_totals(1), slotkeeper_host_keys(1), slotkeeper_instances(1)");
  });

  it.each([
    "SELECT token FROM upstream_slot_pool",
    "SELECT * FROM slotkeeper_token_key",
    "SELECT slotkeeper_token_keys(1, 'x')",
    "SELECT names FROM slotkeeper_ring",
    "SELECT slotkeeper_peek(1, '{}')",
    "UPDATE upstream_slot_pool SET status = 'available'",
    "DELETE FROM upstream_ip_cooldown",
    TRY,
  ])("is refused %s", async (sql) => {
    await expect(as("slotkeeper_reader", sql)).rejects.toThrow(/permission denied/);
  });
});

describe("slotkeeper_postgrest", () => {
  it("calls the contract's functions", async () => {
    expect(await as("slotkeeper_postgrest", TRY)).toEqual([{ status: "ACQUIRED" }]);
    await as("slotkeeper_postgrest", "SELECT * FROM download_check_throttle_protection('', 'roles.example')");
    await as("slotkeeper_postgrest", "SELECT func_release_fair_slot(func_try_acquire_slot('r', 'b', 5, 1, 30, 0))");
  });

  it.each([
    "SELECT FROM upstream_slot_pool",
    "SELECT slotkeeper_peek(1, '{}')",
    "SELECT slotkeeper_token_keys(1, 'x')",
    "SELECT slotkeeper_random()",
    `SELECT slotkeeper_commit(1, 'h', 'i', NULL, '1.a', 0${", NULL".repeat(12)})`,
  ])("is refused %s", async (sql) => {
    await expect(as("slotkeeper_postgrest", sql)).rejects.toThrow(/permission denied/);
  });

  it("uses our tables, not those of a caller with the same names: the functions set their search path", async () => {
    const client = await database.openSession({ options: "-c role=slotkeeper_postgrest" });
    await client.query("CREATE TEMP TABLE slotkeeper_record (host text)").catch(() => {});
    await client.query("SET search_path = pg_temp");
    const { rows } = await client.query(
      "SELECT status FROM public.download_try_acquire_slot('', 'path.example', 'b', 0, 5, 1)",
    );
    expect(rows).toEqual([{ status: "ACQUIRED" }]);
  });
});
