import { type AddressInfo, createServer } from "node:net";
import { MigrateError, migrate, migrationScript, migrationStates, parseDsn, SchemaError } from "@slotkeeper/postgres";
import { assertSchema, type Migration, readMigrations } from "@slotkeeper/postgres/internals";
import { TestDatabase } from "@slotkeeper/testkit/postgres";
import { afterAll, describe, expect, it } from "vitest";

const database = await TestDatabase.open({ isEmpty: true });
afterAll(() => database.close());
const client = await database.connect();
let schemas = 0;
/** Each test has a schema of its own. */
const newTarget = () => ({ dsn: database.dsn, schema: `migrated_${++schemas}` });

const migration = (number: number, sql: string): Migration => {
  const name = `step_${number}`;
  return {
    number,
    name,
    file: `${String(number).padStart(4, "0")}_${name}.sql`,
    sql,
    checksum: Buffer.from(sql).toString("hex"),
  };
};
const FIRST = migration(1, "CREATE TABLE first (n int)");
const SECOND = migration(2, "CREATE TABLE second (n int); INSERT INTO second VALUES (1)");
const THIRD = migration(5, "INSERT INTO second VALUES (2)");

async function tables(schema: string): Promise<string[]> {
  const { rows } = await client.query("SELECT tablename FROM pg_tables WHERE schemaname = $1 ORDER BY 1", [schema]);
  return rows.map(({ tablename }) => tablename as string);
}

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => "no error",
    (error: unknown) => (error instanceof SchemaError || error instanceof MigrateError ? error.code : String(error)),
  );

describe("migrate", () => {
  it("applies missing migrations in order, each once", async () => {
    const target = newTarget();
    const applied: number[] = [];
    const migrations = [FIRST, SECOND];
    await migrate({ ...target, migrations, onApplied: ({ number }) => applied.push(number) });
    expect(applied).toEqual([1, 2]);
    expect(await migrate({ ...target, migrations })).toEqual([]);
    expect(await migrate({ ...target, migrations: [...migrations, THIRD] })).toEqual([THIRD]);
    expect((await client.query(`SELECT n FROM ${target.schema}.second ORDER BY n`)).rows).toEqual([{ n: 1 }, { n: 2 }]);
  });

  it("leaves no changes of a failed migration, and keeps those before it", async () => {
    const target = newTarget();
    const broken = migration(2, "CREATE TABLE half (n int); SELECT 1 / 0");
    const failure = migrate({ ...target, migrations: [FIRST, broken, THIRD] });
    await expect(failure).rejects.toThrow(/0002_step_2\.sql.*division by zero/);
    expect(await tables(target.schema)).toEqual(["first", "slotkeeper_migration"]);
    expect(await migrate({ ...target, migrations: [FIRST, SECOND] })).toEqual([SECOND]);
  });

  it("lets one run wait for another", async () => {
    const target = newTarget();
    const runs = await Promise.all(Array.from({ length: 6 }, () => migrate(target)));
    expect(runs.flat().map(({ number }) => number)).toHaveLength(readMigrations().length);
    expect(await migrate(target)).toEqual([]);
  });

  it("refuses a schema of a newer version, and changes nothing", async () => {
    const target = newTarget();
    await migrate({ ...target, migrations: [FIRST, migration(7, "SELECT 1")] });
    const older = migrate({ ...target, migrations: [FIRST] });
    await expect(older).rejects.toThrow(/newer version.*0007_step_7.*Nothing was changed/);
    expect(await codeOf(migrate({ ...target, migrations: [FIRST, migration(9, "CREATE TABLE no ()")] }))).toBe(
      "SCHEMA_NEW",
    );
    expect(await tables(target.schema)).toEqual(["first", "slotkeeper_migration"]);
  });

  it("refuses an applied migration whose text has changed, and one that was skipped", async () => {
    const target = newTarget();
    await migrate({ ...target, migrations: [FIRST, SECOND] });
    const changed = [migration(1, "CREATE TABLE other (n int)"), SECOND, THIRD];
    await expect(migrate({ ...target, migrations: changed })).rejects.toThrow(/other texts of 0001_step_1/);
    const between = [FIRST, migration(1.5, "SELECT 1"), SECOND];
    await expect(migrate({ ...target, migrations: between })).rejects.toThrow(/lacks .*though later ones/);
    expect(await tables(target.schema)).toEqual(["first", "second", "slotkeeper_migration"]);
  });

  it("gives up if another session locks a table for too long, because other statements wait behind it", async () => {
    const target = newTarget();
    await migrate({ ...target, migrations: [FIRST] });
    await client.query(`BEGIN; LOCK TABLE ${target.schema}.first`);
    const impatient = migration(2, "SET LOCAL lock_timeout = '50ms'; ALTER TABLE first ADD COLUMN m int");
    await expect(migrate({ ...target, migrations: [FIRST, impatient] })).rejects.toThrow(/try again/);
    await client.query("ROLLBACK");
  });

  it("works with a role that may use the schema but not create one", async () => {
    const role = `migrator_${Date.now()}`;
    await client.query(`CREATE ROLE ${role}; CREATE SCHEMA theirs AUTHORIZATION ${role}`);
    const dsn = new URL(database.directDsn);
    dsn.searchParams.set("options", `-c role=${role}`);
    try {
      expect(await codeOf(migrate({ dsn: dsn.href }))).toBe("42501");
      expect(await migrate({ dsn: dsn.href, schema: "theirs" })).toHaveLength(readMigrations().length);
    } finally {
      await client.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
    }
  });
});

describe("migrationStates and assertSchema", () => {
  it("report what is applied, pending, changed and unknown", async () => {
    const target = newTarget();
    await migrate({ ...target, migrations: [FIRST, SECOND, THIRD] });
    const states = await migrationStates({
      ...target,
      migrations: [FIRST, migration(2, "SELECT 3"), migration(9, "")],
    });
    expect(states.map(({ number, state, appliedAt }) => [number, state, appliedAt instanceof Date])).toEqual([
      [1, "applied", true],
      [2, "changed", true],
      [5, "unknown", true],
      [9, "pending", false],
    ]);
  });

  it("make a server refuse to start on a missing, old or newer schema, with a message that says what to do", async () => {
    const target = newTarget();
    await expect(assertSchema(client, target.schema)).rejects.toThrow(/is not set up. Run: slotkeeper migrate/);
    await migrate({ ...target, migrations: readMigrations().slice(0, 2) });
    expect(await codeOf(assertSchema(client, target.schema))).toBe("SCHEMA_OLD");
    await migrate(target);
    await assertSchema(client, target.schema);
    await client.query(`INSERT INTO ${target.schema}.slotkeeper_migration VALUES (9999, 'of_tomorrow', 'x')`);
    await expect(assertSchema(client, target.schema)).rejects.toThrow(/newer version.*9999_of_tomorrow/);
    expect(await codeOf(assertSchema(client, "elsewhere"))).toBe("SCHEMA_MISSING");
  });
});

describe("migrationScript", () => {
  it("does what migrate does, and migrate then finds nothing to do", async () => {
    const target = newTarget();
    await client.query(migrationScript(target.schema));
    expect(await migrate(target)).toEqual([]);
    await expect(client.query(migrationScript(target.schema))).rejects.toThrow(/duplicate key/);
    await client.query("ROLLBACK");
    expect(await migrate(target)).toEqual([]);
  });

  it.each(["", "x".repeat(64), "a\0b", "$user"])("refuses %j for a schema", (schema) => {
    expect(() => migrationScript(schema)).toThrow(/Expected `schema` to be a name of 1 to 63 bytes/);
  });
});

describe("a server that is not reachable", () => {
  it.each([
    [
      "postgres://u:hush@127.0.0.1:1/x",
      "ECONNREFUSED",
      /Cannot reach the database at 127\.0\.0\.1:1: no server listens/,
    ],
    ["host=127.0.0.1 port=1 user=u password=hush dbname=x", "ECONNREFUSED", /127\.0\.0\.1:1/],
    ["postgres://u:hush@no-such-host.invalid/x", /ENOTFOUND|EAI_AGAIN/, /no-such-host\.invalid:5432/],
    ["host=/nowhere user=u password=hush", "ENOENT", /at \/nowhere: the socket does not exist/],
  ])("%s has a clear error, without the password", async (dsn, code, message) => {
    const error = await migrate({ dsn }).catch((failure: unknown) => failure);
    expect(error).toBeInstanceOf(MigrateError);
    expect(error).toMatchObject({ code: expect.stringMatching(code), message: expect.stringMatching(message) });
    expect(JSON.stringify(error) + String((error as Error).stack)).not.toContain("hush");
  });

  it("the refusal of a pooler, which has one code for all causes, says where to look", async () => {
    const fields = ["SFATAL", "C08P01", "Mno such user: u", ""].join("\0");
    const head = Buffer.from("E\0\0\0\0");
    head.writeInt32BE(4 + fields.length + 1, 1);
    const pooler = createServer((socket) =>
      socket.once("data", () => socket.end(`${head.toString("latin1")}${fields}\0`)),
    );
    await new Promise<void>((resolve) => void pooler.listen(0, "127.0.0.1", resolve));
    const { port } = pooler.address() as AddressInfo;
    const refused = migrate({ dsn: `postgres://u:hush@127.0.0.1:${port}/x` });
    await expect(refused).rejects.toThrow(
      /refused: no such user: u\. A pooler in front of the database reports this: check the user/,
    );
    pooler.close();
  });

  it("a wrong password and a missing database each have their own message", async () => {
    const wrong = new URL(database.directDsn);
    wrong.username = "unknown_role";
    wrong.password = "hush";
    const refused = await migrate({ dsn: wrong.href }).catch((error: unknown) => error as MigrateError);
    expect(refused).toMatchObject({ code: expect.stringMatching(/^28/), message: expect.stringContaining("Check") });
    const missing = new URL(database.directDsn);
    missing.pathname = "/no_such_database";
    await expect(migrate({ dsn: missing.href })).rejects.toThrow(/no_such_database.*createdb/);
  });

  it.each([
    "",
    "nonsense",
    "mysql://u:hush@h/x",
    "host=h password='hush",
    "postgres://u:hush@h:port/x",
    "postgres://u:hu/sh@h/x",
  ])("%j is not a dsn, and the message does not quote it", (dsn) => {
    expect(() => parseDsn(dsn)).toThrow(/Expected the dsn to be like postgres:\/\/user:password@host:5432\/database/);
    expect(() => parseDsn(dsn)).not.toThrow(/hush/);
  });

  it("reads both forms of a dsn, with sslmode and timeouts as PostgreSQL's tools do", () => {
    expect(
      parseDsn("host=h port=6 dbname='a b' user=u password=p\\'q sslmode=disable connect_timeout=3"),
    ).toMatchObject({
      host: "h",
      port: 6,
      database: "a b",
      user: "u",
      password: "p'q",
      ssl: false,
      connectionTimeoutMillis: 3000,
    });
    const url = parseDsn("postgresql://u:p%40q@h:6/d?sslmode=require");
    expect(url).toMatchObject({ host: "h", port: 6, password: "p@q", ssl: { rejectUnauthorized: false } });
  });

  it.each(["bogus", "", "REQUIRE", "allow", "no-verify"])("refuses sslmode=%s and lists the allowed values", (mode) => {
    for (const dsn of [`postgres://u:hush@h/d?sslmode=${mode}`, `host=h password=hush sslmode='${mode}'`]) {
      expect(() => parseDsn(dsn)).toThrow("its sslmode is none of disable, prefer, require, verify-ca, verify-full (");
    }
  });
});
