import { readFileSync } from "node:fs";
import { CHECKS, VERSION } from "@slotkeeper/server";
import { TestDatabase } from "@slotkeeper/testkit/postgres";
import { PostgresProxy, withoutNotifications } from "@slotkeeper/testkit/proxy";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { startFixture } from "../service-fixture.ts";
import { diagnosisOf, finding, reported } from "./findings.ts";

let database: TestDatabase;
let owner: Awaited<ReturnType<TestDatabase["connect"]>>;

/** The test server may lose commits in a crash, which the doctor would report. */
async function openDatabase(): Promise<TestDatabase> {
  const opened = await TestDatabase.open();
  const client = await opened.connect();
  await client.query(`ALTER DATABASE ${new URL(opened.directDsn).pathname.slice(1)} SET synchronous_commit = on`);
  return opened;
}

beforeAll(async () => {
  database = await openDatabase();
  owner = await database.openSession();
});
afterAll(() => database.close());

/** The doctor's report about a database, with a direct connection unless the test needs another. */
const examine = (postgres: object = {}, more: object = {}) =>
  diagnosisOf({ backend: { postgres: { dsn: database.directDsn, ...postgres } }, ...more });

describe("a sound database", () => {
  it("gives nothing to report, whether instances run or not", async () => {
    const alone = await examine();
    expect(alone).toMatchObject({ store: "postgres", severity: "ok", skipped: [] });
    const fixture = await startFixture({ config: { backend: { postgres: { dsn: database.directDsn } } } });
    await fixture.take();
    const beside = await examine();
    expect(beside.severity).toBe("ok");
    expect(beside.findings.map(({ check }) => check)).toEqual(CHECKS.filter((check) => check !== "journal"));
    expect(beside.findings.at(-1)?.found).toMatch(/^1 runs, version/);
    const { password } = new URL(database.directDsn);
    expect(JSON.stringify(beside)).not.toContain(password);
  });

  it("is not changed by the checks", async () => {
    const count = "SELECT (SELECT count(*) FROM slotkeeper_instance) + (SELECT count(*) FROM slotkeeper_host) AS rows";
    const before = await owner.query(count);
    await examine();
    expect((await owner.query(count)).rows).toEqual(before.rows);
  });
});

describe("the server", () => {
  it("that is unreachable is a problem, and everything that needs it is not checked", async () => {
    const diagnosis = await examine({ dsn: "postgres://keeper:hush@127.0.0.1:1/slots" });
    expect(reported(diagnosis)).toEqual(["problem STORE_UNREACHABLE"]);
    expect(finding(diagnosis, "STORE_UNREACHABLE").found).toContain("127.0.0.1:1");
    expect(diagnosis.skipped).toEqual(["schema", "permissions", "notifications", "clock", "instances"]);
    expect(JSON.stringify(diagnosis)).not.toContain("hush");
  });

  it("with an invalid address is a problem that does not quote it", async () => {
    for (const dsn of ["postgres://keeper:hush@host:port/slots", "postgres://keeper:hush@host/slots?sslmode=bogus"]) {
      const diagnosis = await examine({ dsn });
      expect(finding(diagnosis, "CONFIG_INVALID").found).toMatch(/^`backend\.postgres\.dsn` cannot be used/);
      expect(JSON.stringify(diagnosis)).not.toContain("hush");
    }
  });

  it.each([
    [
      "a wrong password",
      { password: "hush" },
      "STORE_FORBIDDEN",
      "password authentication failed",
      "user and password",
    ],
    [
      "a database that is not there",
      { pathname: "/nothing" },
      "STORE_UNREACHABLE",
      '"nothing" does not exist',
      "createdb",
    ],
    ["no SSL", { search: "?sslmode=require" }, "STORE_UNREACHABLE", "does not offer SSL", "sslmode=disable"],
  ] as const)("with %s is a problem with a fix of its own", async (_title, part, code, found, fix) => {
    const dsn = Object.assign(new URL(database.directDsn), part).href;
    const said = finding(await examine({ dsn }), code);
    expect(said).toMatchObject({ check: "database", severity: "problem" });
    expect([said.found, said.fix]).toEqual([expect.stringContaining(found), expect.stringContaining(fix)]);
    expect(said.why).toContain("exits at once");
    expect(said.fix).toContain("`backend.postgres.dsn`");
  });

  it("that is older than PostgreSQL 15 is a problem", async () => {
    const { rows } = await owner.query<{ server_version_num: string }>("SHOW server_version_num");
    const real = rows[0]?.server_version_num ?? "";
    const proxy = await PostgresProxy.start(database.directDsn, (_type, message) =>
      Buffer.from(message.toString("latin1").replaceAll(real, "140012"), "latin1"),
    );
    const diagnosis = await examine({ dsn: proxy.dsn });
    expect(reported(diagnosis)).toEqual(["problem SERVER_TOO_OLD"]);
    expect(finding(diagnosis, "SERVER_TOO_OLD").fix).toContain("15 or later");
    await proxy.close();
  });

  it("that accepts no writes is a problem; commits that a crash can lose are a warning", async () => {
    const dsnWith = (options: string) => {
      const dsn = new URL(database.directDsn);
      dsn.searchParams.set("options", options);
      return dsn.href;
    };
    expect(reported(await examine({ dsn: dsnWith("-c default_transaction_read_only=on") }))).toEqual([
      "problem STORE_READ_ONLY",
    ]);
    expect(reported(await examine({ dsn: dsnWith("-c synchronous_commit=off") }))).toEqual([
      "warning COMMITS_NOT_DURABLE",
    ]);
  });
});

describe("the schema", () => {
  it("that was never migrated is a problem, and the fix is to migrate", async () => {
    const diagnosis = await examine({ schema: "nothing_here" });
    expect(reported(diagnosis)).toEqual(["problem SCHEMA_MISSING"]);
    expect(finding(diagnosis, "SCHEMA_MISSING").fix).toContain("slotkeeper migrate");
    expect(diagnosis.skipped).toEqual(["permissions", "instances"]);
  });

  it("with a missing migration, one of a newer version, or one with a different text is a problem", async () => {
    await using own = await openDatabase();
    const client = await own.connect();
    const codes = async (sql: string) => {
      await client.query(sql);
      return reported(await examine({ dsn: own.directDsn }));
    };
    await client.query("CREATE TABLE kept AS SELECT * FROM slotkeeper_migration");
    const last = "number = (SELECT max(number) FROM kept)";
    expect(await codes(`DELETE FROM slotkeeper_migration WHERE ${last}`)).toEqual(["problem SCHEMA_OLD"]);
    await client.query(`INSERT INTO slotkeeper_migration SELECT * FROM kept WHERE ${last}`);
    expect(await codes("INSERT INTO slotkeeper_migration VALUES (9999, 'of_tomorrow', 'x')")).toEqual([
      "problem SCHEMA_NEW",
    ]);
    await client.query("DELETE FROM slotkeeper_migration WHERE number = 9999");
    expect(await codes("UPDATE slotkeeper_migration SET checksum = 'x' WHERE number = 1")).toEqual([
      "problem SCHEMA_CHANGED",
    ]);
  });
});

describe("permissions", () => {
  const role = `doctor_${Date.now()}`;
  const grants = [
    ...readFileSync(new URL("../../../postgres/sql/roles.sql", import.meta.url), "utf8").matchAll(
      /^GRANT [^;]* TO slotkeeper_service;/gm,
    ),
  ].map(([grant]) => grant.replace("slotkeeper_service", role));
  const asRole = () => {
    const dsn = new URL(database.directDsn);
    dsn.username = role;
    dsn.password = "for-tests";
    return examine({ dsn: dsn.href });
  };

  beforeAll(async () => {
    await owner.query(`CREATE ROLE ${role} LOGIN PASSWORD 'for-tests'`);
    await owner.query(`GRANT USAGE ON SCHEMA public TO ${role}; ${grants.join("\n")}`);
  });
  afterAll(async () => {
    await owner.query(`GRANT USAGE ON SCHEMA public TO PUBLIC; DROP OWNED BY ${role}; DROP ROLE ${role}`);
  });

  it("of slotkeeper_service are enough", async () => {
    expect(reported(await asRole())).toEqual([]);
  });

  it.each([
    ["EXECUTE ON FUNCTION slotkeeper_commit", "function slotkeeper_commit"],
    ["SELECT ON slotkeeper_migration", "table slotkeeper_migration"],
  ])("without %s are a problem that names it, and its own GRANT repairs it", async (right, named) => {
    await owner.query(`REVOKE ${right} FROM ${role}`);
    const missing = finding(await asRole(), "PERMISSION_MISSING");
    expect(missing).toMatchObject({ check: "permissions", severity: "problem" });
    expect(missing.found).toContain(`${named} (role ${role})`);
    const [grant = ""] = /GRANT .*;$/.exec(missing.fix.slice(missing.fix.indexOf("or: "))) ?? [];
    await owner.query(grant);
    expect(reported(await asRole())).toEqual([]);
  });

  it("without the schema itself are a problem, and it is not reported as empty", async () => {
    await owner.query(`REVOKE USAGE ON SCHEMA public FROM ${role}, PUBLIC`);
    const missing = finding(await asRole(), "PERMISSION_MISSING");
    expect(missing.found).toContain("schema public");
    await owner.query(`GRANT USAGE ON SCHEMA public TO ${role}`);
  });

  it("of the functions' owner on a table are checked, too", async () => {
    const tableOwner = `${role}_owner`;
    await owner.query(
      `CREATE ROLE ${tableOwner}; GRANT USAGE ON SCHEMA public TO ${tableOwner}; GRANT ALL ON ALL TABLES IN SCHEMA public TO ${tableOwner}`,
    );
    const { rows } = await owner.query<{ owner: string }>("SELECT current_user AS owner");
    await owner.query(
      `ALTER FUNCTION slotkeeper_commit OWNER TO ${tableOwner}; GRANT EXECUTE ON FUNCTION slotkeeper_commit TO ${role}; REVOKE UPDATE ON upstream_slot_pool FROM ${tableOwner}`,
    );
    try {
      const missing = finding(await examine(), "PERMISSION_MISSING");
      expect(missing.fix).toContain(`GRANT UPDATE ON "public"."upstream_slot_pool" TO "${tableOwner}";`);
    } finally {
      await owner.query(
        `ALTER FUNCTION slotkeeper_commit OWNER TO ${rows[0]?.owner}; DROP OWNED BY ${tableOwner}; DROP ROLE ${tableOwner}`,
      );
    }
  });
});

describe("notifications", () => {
  it("that a pooler does not forward are a warning, and listenDsn is the fix", async () => {
    const pooler = await PostgresProxy.start(database.directDsn, withoutNotifications);
    const diagnosis = await examine({ dsn: pooler.dsn });
    expect(reported(diagnosis)).toEqual(["warning NOTIFICATIONS_LOST"]);
    expect(finding(diagnosis, "NOTIFICATIONS_LOST").fix).toContain("backend.postgres.listenDsn");
    expect(reported(await examine({ dsn: pooler.dsn, listenDsn: database.directDsn }))).toEqual([]);
    await pooler.close();
  });

  it("of another database, or with an unreachable address, are a warning", async () => {
    await using other = await openDatabase();
    expect(reported(await examine({ listenDsn: other.directDsn }))).toEqual(["warning LISTEN_ELSEWHERE"]);
    expect(reported(await examine({ listenDsn: "postgres://u:p@127.0.0.1:1/x" }))).toEqual([
      "warning LISTEN_UNREACHABLE",
    ]);
  });
});

it("clocks that differ by more than a second are a warning with the direction and the difference", async () => {
  for (const [shiftMs, text] of [
    [90_000, "90.0 s ahead of"],
    [-5_000, "5.0 s behind"],
  ] as const) {
    const real = Date.now;
    const clock = vi.spyOn(Date, "now").mockImplementation(() => real() + shiftMs);
    const diagnosis = await examine();
    clock.mockRestore();
    expect(reported(diagnosis)).toEqual(["warning CLOCK_SKEW"]);
    expect(finding(diagnosis, "CLOCK_SKEW").found).toContain(text);
  }
});

describe("instances", () => {
  const instance = (fairQueue: object) =>
    startFixture({ config: { backend: { postgres: { dsn: database.directDsn } }, fairQueue } });

  it("with limits that differ from each other, or from this configuration, are a warning", async () => {
    await instance({ maxSlotPerHost: 7 });
    expect(reported(await examine())).toEqual(["warning LIMITS_NOT_LOADED"]);
    expect(reported(await examine({}, { fairQueue: { maxSlotPerHost: 7 } }))).toEqual([]);
    await instance({ maxSlotPerHost: 8 });
    expect(reported(await examine())).toEqual(["warning LIMITS_DRIFT"]);
  });

  it("of a different version are a warning that names them", async () => {
    const about = JSON.stringify({ version: "0.0.9", configHash: "" });
    await owner.query("SELECT slotkeeper_beat(1, 'old-one', 60000, $1, '{}', '{}', false)", [about]);
    const diagnosis = await examine();
    expect(finding(diagnosis, "VERSION_DRIFT").found).toContain(`old-one 0.0.9; this command is ${VERSION}`);
    await owner.query("SELECT slotkeeper_beat(1, 'old-one', 0, '{}', '{}', '{}', false)");
  });
});
