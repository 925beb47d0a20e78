import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TestDatabase } from "@slotkeeper/testkit/postgres";
import { TcpProxy } from "@slotkeeper/testkit/proxy";
import { afterAll, describe, expect, it } from "vitest";
import { slotkeeper } from "./command.ts";

const directory = mkdtempSync(join(tmpdir(), "slotkeeper-cli-"));
const database = await TestDatabase.open({ isEmpty: true });
afterAll(async () => {
  rmSync(directory, { recursive: true });
  await database.close();
});

function configFile(name: string, postgres: object): string {
  const file = join(directory, name);
  writeFileSync(file, JSON.stringify({ backend: { postgres } }));
  return file;
}

async function migrate(...args: string[]) {
  const command = slotkeeper(["migrate", ...args]);
  const code = await command.exited;
  return { code, out: command.out, err: command.err };
}

const config = configFile("config.json", { dsn: database.dsn, schema: "slots" });

describe("slotkeeper serve", () => {
  it("refuses a database that was not migrated, reports what to do, and exits 5", async () => {
    const fresh = configFile("fresh.json", { dsn: database.dsn, schema: "nothing_here" });
    const command = slotkeeper(["serve", "-c", fresh, "--listen", "127.0.0.1:0"]);
    expect(await command.exited).toBe(5);
    expect(command.err).toContain(`The schema "nothing_here" is not set up. Run: slotkeeper migrate -c ${fresh}\n`);
    const variables = {
      SLOTKEEPER_BACKEND__POSTGRES__DSN: database.dsn,
      SLOTKEEPER_BACKEND__POSTGRES__SCHEMA: "nothing_here",
    };
    const without = slotkeeper(["serve", "--listen", "127.0.0.1:0"], variables);
    expect(await without.exited).toBe(5);
    expect(without.err).toContain('The schema "nothing_here" is not set up. Run: slotkeeper migrate\n');
  });

  it("waits for a database that is not available yet, reports it, and then serves", async () => {
    const migrated = await TestDatabase.open();
    const proxy = await TcpProxy.to(migrated.directDsn);
    await proxy.refuse();
    const file = configFile("late.json", { dsn: proxy.url });
    const command = slotkeeper(["serve", "-c", file, "--listen", "127.0.0.1:0"]);
    await command.said(
      /"msg":"waiting for the database","reason":"Cannot reach the database at [^"]+: no server listens there\."/,
    );
    await proxy.accept();
    const url = await command.url();
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    expect(command.err).toContain('"msg":"the database is reachable"');
    command.kill("SIGTERM");
    expect(await command.exited).toBe(0);
    await proxy.close();
    await migrated.close();
  });

  it("gives up at its deadline and exits 5; a signal ends the wait immediately", async () => {
    const file = configFile("unreachable.json", { dsn: "postgres://u:hush@127.0.0.1:1/x" });
    const impatient = slotkeeper(["serve", "-c", file, "--wait-for-store", "0.5"]);
    expect(await impatient.exited).toBe(5);
    expect(impatient.err).toContain("Cannot reach the database at 127.0.0.1:1: no server listens there.");
    const patient = slotkeeper(["serve", "-c", file, "--wait-for-store", "3600"]);
    await patient.said(/waiting for the database/);
    patient.kill("SIGINT");
    expect(await patient.exited).toBe("SIGINT");
    const wrong = slotkeeper(["serve", "-c", file, "--wait-for-store", "soon"]);
    expect(await wrong.exited).toBe(3);
    expect(wrong.err).toContain("`backend.startWaitSeconds`");
  });

  it("does not wait if waiting cannot help, and explains the failure as `migrate` does", async () => {
    const dsn = new URL(database.directDsn);
    dsn.username = "unknown_role";
    const command = slotkeeper(["serve", "-c", configFile("wrong.json", { dsn: dsn.href })]);
    expect(await command.exited).toBe(5);
    const { err } = await migrate("-c", configFile("wrong.json", { dsn: dsn.href }));
    expect(err).toMatch(/^The database refused: .* Check the user(?: and password)? of the dsn/);
    expect(command.err).toContain(err);
  });
});

describe("slotkeeper migrate", () => {
  it("shows what is pending (exit code 10), migrates, and then has nothing to do (0)", async () => {
    const before = await migrate("-c", config, "--status");
    expect(before).toMatchObject({ code: 10, out: expect.stringMatching(/^0001 {2}pending {2}original_layout\n/) });
    const first = await migrate("-c", config);
    expect(first).toMatchObject({ code: 0, out: expect.stringMatching(/^applied {2}0001_original_layout\.sql\n/) });
    expect(first.out).toMatch(/The schema "slots" is up to date\.\n$/);
    expect(await migrate("-c", config)).toEqual({
      code: 0,
      out: 'Nothing to do: the schema "slots" is up to date.\n',
      err: "",
    });
    const after = await migrate("-c", config, "--status", "--json");
    expect(after.code).toBe(0);
    const states = JSON.parse(after.out) as { state: string }[];
    expect(states[0]).toMatchObject({ number: 1, name: "original_layout", appliedAt: expect.any(String) });
    expect(new Set(states.map(({ state }) => state))).toEqual(new Set(["applied"]));
  });

  it("waits for other runs: each migration is applied by one of them", async () => {
    const shared = configFile("shared.json", { dsn: database.dsn, schema: "shared" });
    const runs = await Promise.all([migrate("-c", shared), migrate("-c", shared), migrate("-c", shared)]);
    expect(runs.map(({ code, err }) => [code, err])).toEqual([0, 0, 0].map((code) => [code, ""]));
    const applied = runs.flatMap(({ out }) => out.match(/^applied {2}.*$/gm) ?? []);
    const { out } = await migrate("-c", shared, "--status", "--json");
    expect(applied.length).toBe((JSON.parse(out) as unknown[]).length);
    expect(new Set(applied).size).toBe(applied.length);
  });

  it("prints its SQL without a database, and that SQL migrates", async () => {
    const nowhere = configFile("nowhere.json", { dsn: "postgres://u:hush@127.0.0.1:1/x", schema: "printed" });
    const { code, out } = await migrate("-c", nowhere, "--print");
    expect([code, out.includes("hush")]).toEqual([0, false]);
    const client = await database.connect();
    await client.query(out);
    const printed = configFile("printed.json", { dsn: database.dsn, schema: "printed" });
    expect(JSON.parse((await migrate("-c", printed, "--json")).out)).toEqual({ schema: "printed", applied: [] });
  });

  it("exits 5 if the database cannot be used, and reports why, never with the password", async () => {
    const nowhere = configFile("nowhere.json", { dsn: "postgres://u:hush@127.0.0.1:1/x" });
    expect(await migrate("-c", nowhere)).toEqual({
      code: 5,
      out: "",
      err: "Cannot reach the database at 127.0.0.1:1: no server listens there. Start the server, or correct the host and port of the address.\n",
    });
    const client = await database.connect();
    await client.query("INSERT INTO slots.slotkeeper_migration VALUES (9999, 'of_tomorrow', 'x')");
    expect(await migrate("-c", config)).toMatchObject({ code: 5, err: expect.stringContaining("newer version") });
    expect(await migrate("-c", config, "--status")).toMatchObject({
      code: 11,
      out: expect.stringContaining("9999  unknown  of_tomorrow"),
      err: expect.stringContaining("newer version"),
    });
    await client.query("DELETE FROM slots.slotkeeper_migration WHERE number = 9999");
  });

  it.each([
    [[], 3, /`backend\.postgres\.dsn` is required to migrate: `backend\.mode` is "memory"/],
    [["--print", "--status"], 2, /cannot be combined/],
  ])("%j exits %i", async (args, code, message) => {
    expect(await migrate(...args)).toMatchObject({ code, err: expect.stringMatching(message) });
  });

  it("exits 3 for an invalid dsn, and does not quote it", async () => {
    const { code, err } = await migrate("-c", configFile("bad.json", { dsn: "postgres://u:hush@h:port/x" }));
    expect([code, err.includes("hush")]).toEqual([3, false]);
    expect(err).toContain("Expected the dsn to be like");
  });

  it.each(["$user", "x".repeat(64), "é".repeat(32)])(
    "exits 3 for the schema %j, and changes nothing",
    async (schema) => {
      const { code, err } = await migrate("-c", configFile("named.json", { dsn: database.dsn, schema }));
      expect([code, err]).toEqual([3, expect.stringContaining(`\`backend.postgres.schema\` cannot be used.`)]);
      expect(err).toContain(`a name of 1 to 63 bytes other than "$user", got ${JSON.stringify(schema)}`);
      const client = await database.connect();
      const named = "SELECT FROM pg_namespace WHERE starts_with($1, nspname)";
      expect((await client.query(named, [schema])).rows).toEqual([]);
    },
  );

  it("prints its help", async () => {
    expect(await migrate("--help")).toMatchObject({
      code: 0,
      out: expect.stringMatching(/Usage[\s\S]*Examples[\s\S]*Exit codes/),
    });
  });
});
