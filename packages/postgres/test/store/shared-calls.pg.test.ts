import { type DatabaseError, PostgresStore } from "@slotkeeper/postgres";
import type { Commit } from "@slotkeeper/queue";
import { TestDatabase } from "@slotkeeper/testkit/postgres";
import { accountOf, HostUnderTest } from "@slotkeeper/testkit/store-conformance";
import type { Client } from "pg";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

/** Commits of different hosts in one call (LANE4). */

const HOSTS = 16;
let database: TestDatabase;
let store: PostgresStore;
let hosts: HostUnderTest[];

beforeAll(async () => {
  database = await TestDatabase.open();
  store = await PostgresStore.open({ dsn: database.dsn, poolSize: 4 });
});
afterAll(async () => {
  await store.close();
  await database.close();
});
beforeEach(async () => {
  const subject = { store, other: store, pass: async () => {}, close: async () => {} };
  hosts = await Promise.all(Array.from({ length: HOSTS }, () => HostUnderTest.on(subject)));
});

/**
 * Accepts a commit of each host, all at the same time, that writes two accounts or deletes one of the last commit. `now`
 * is given, so that no call reads it.
 */
async function acceptAll(usedMs: number): Promise<void> {
  const now = await (hosts[0] as HostUnderTest).now();
  const puts = [accountOf("b", now, usedMs), accountOf(`only ${usedMs}, "\\`, now, 0)];
  const dels = [["account", `only ${usedMs - 1}, "\\`]] as const;
  await Promise.all(hosts.map(async (host) => acceptAgain(host, await host.commitOf({ puts, dels, now }))));
}

/** As the engine does: after an error that a retry may fix, the same commit is sent again. */
async function acceptAgain(host: HostUnderTest, commit: Commit): Promise<void> {
  const reply = await store.commit(commit).catch((error: DatabaseError) => {
    if (!error.retryable) throw error;
  });
  if (reply === undefined) return acceptAgain(host, commit);
  expect(reply).toMatchObject({ isOk: true });
  host.tag = commit.tag;
}

/** The use of the account that every commit writes. The others show that each commit was applied as a whole. */
async function usedMs(host: HostUnderTest): Promise<number | undefined> {
  const accounts = ((await host.book())?.records ?? []).filter((record) => record.kind === "account");
  const used = accounts.find(({ key }) => key === "b")?.usedMs;
  expect(accounts.map(({ key }) => key).sort()).toEqual(["b", `only ${used}, "\\`]);
  return used;
}

async function lockRow(host: string): Promise<Client> {
  const stranger = await database.connect();
  await stranger.query("BEGIN");
  await stranger.query("SELECT FROM slotkeeper_host WHERE host = $1 FOR UPDATE", [host]);
  return stranger;
}

test("the commits of sixteen hosts, first and later ones, are one transaction", async () => {
  const admin = await database.openSession();
  for (const usedMs of [1, 2]) {
    await acceptAll(usedMs);
    const { rows } = await admin.query("SELECT DISTINCT xmin::text FROM slotkeeper_host WHERE host = ANY ($1)", [
      hosts.map(({ host }) => host),
    ]);
    expect(rows).toHaveLength(1);
  }
  for (const host of hosts) expect(await usedMs(host)).toBe(2);
});

test("P7: a locked host delays the others of its call for a moment only, and its own commit is accepted afterwards", async () => {
  await acceptAll(1);
  const [locked, ...others] = hosts as [HostUnderTest, ...HostUnderTest[]];
  const stranger = await lockRow(locked.host);
  const now = await locked.now();
  let isAccepted = false;
  const waiting = locked.accept({ now }).then(() => {
    isAccepted = true;
  });
  await Promise.all(others.map((host) => host.accept({ now })));
  expect(isAccepted).toBe(false);
  await stranger.query("ROLLBACK");
  await waiting;
});

test("P4, P8: after the connection was cut during a shared call, each commit takes effect once", async () => {
  await acceptAll(1);
  const [locked] = hosts as [HostUnderTest];
  const stranger = await lockRow(locked.host);
  const all = acceptAll(2).catch((error: unknown) => error);
  const admin = await database.openSession();
  const waits = "FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
  await expect.poll(async () => (await admin.query(`SELECT ${waits}`)).rows.length).toBeGreaterThan(0);
  await admin.query(`SELECT pg_terminate_backend(pid) ${waits}`);
  await stranger.query("ROLLBACK");
  expect(await all).toBeUndefined();
  for (const host of hosts) expect(await usedMs(host)).toBe(2);
});

test("calls with several hosts in common do not deadlock", async () => {
  const other = await PostgresStore.open({ dsn: database.dsn, poolSize: 4 });
  await acceptAll(1);
  for (let round = 0; round < 20; round++) {
    const now = await (hosts[0] as HostUnderTest).now();
    const commits = await Promise.all(hosts.map((host) => host.commitOf({ now })));
    const replies = await Promise.all(
      commits.flatMap((commit) => [store.commit(commit), other.commit({ ...commit, tag: `${commit.tag}-other` })]),
    );
    // Of two commits on the same tag one is accepted.
    for (const [at, host] of hosts.entries()) {
      const [mine, theirs] = replies.slice(2 * at, 2 * at + 2);
      expect([mine?.isOk, theirs?.isOk].filter(Boolean)).toHaveLength(1);
      const tag = commits[at]?.tag as string;
      host.tag = mine?.isOk === true ? tag : `${tag}-other`;
    }
  }
  await other.close();
});
