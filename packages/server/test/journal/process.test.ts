import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readFileSync, utimesSync } from "node:fs";
import { mkdtemp, readdir, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { JournalLockedError } from "@slotkeeper/server";
import { type JournalEvent, openJournaledMemoryStore, ProcessLock, thisProcess } from "@slotkeeper/server/internals";
import { realClock } from "slotkeeper";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { bundleChild, Child } from "./bundled-child.ts";
import { Calls, LIMITS, policyOf } from "./store-calls.ts";

let child: string;
let folder: string;
let path: string;

beforeAll(async () => {
  child = await bundleChild("journal-child.ts");
});
afterAll(async () => {
  await rm(join(child, "..", ".."), { recursive: true });
});
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "slotkeeper-journal-"));
  path = join(folder, "journal");
  return () => rm(folder, { recursive: true });
});

function open(onEvent: (event: JournalEvent) => void = () => {}) {
  return openJournaledMemoryStore({ path, clock: realClock, newTokenKey: randomUUID, onEvent });
}

const run = (generation: string, ...more: string[]) => new Child([process.execPath, child, path, generation, ...more]);

/** A lock file as this process would leave it, with some fields changed. */
const leaveSign = async (change: Record<string, unknown>) => {
  const self = await thisProcess();
  const file = `${path}.lock.${self.id}`;
  await writeFile(file, JSON.stringify({ ...self, ...change }));
  return file;
};

describe("a process killed under load", () => {
  test("repeatedly grants nothing twice, loses no answered change, and its fences grow", async () => {
    const policy = policyOf(LIMITS);
    let lastFence = 0;
    let keys: readonly string[] | undefined;
    let answered = 0;
    for (let life = 0; life < 12; life++) {
      const alive = run(String(life));
      await alive.received(20 + 97 * life);
      await alive.kill();
      const linesOf = (kind: string) => alive.lines.filter((line) => kind in line);
      const asked = new Set(linesOf("asked").map((line) => line["asked"]));
      const opened = await open();
      const calls = new Calls(opened.store, policy);
      const host = await calls.snapshot();
      expect(host?.inFlight ?? 0).toBeLessThanOrEqual(policy.slots);
      for (const bucket of host?.buckets ?? []) expect(bucket.inFlight).toBeLessThanOrEqual(policy.slotsPerBucket);
      for (const line of linesOf("granted")) {
        answered++;
        expect(line["fence"]).toBeGreaterThan(life === 0 ? 0 : lastFence);
        const isReleased = linesOf("released").some(({ released }) => released === line["granted"]);
        const again = await calls.ask(line["granted"] as string);
        if (isReleased) expect(again).toMatchObject({ status: "ENDED", end: "released" });
        else if (!asked.has(line["granted"])) expect(again).toMatchObject({ slot: { fence: line["fence"] } });
      }
      lastFence = Math.max(lastFence, ...linesOf("granted").map((line) => line["fence"] as number));
      expect(opened.tokenKeys).toEqual(keys ?? opened.tokenKeys);
      keys = opened.tokenKeys;
      for (const { slot } of (await calls.snapshot())?.leases ?? []) {
        await calls.revoke(Number(slot.slice(slot.lastIndexOf(".") + 1)));
      }
      await opened.close();
    }
    expect(answered).toBeGreaterThan(200);
    expect(await readdir(folder)).toEqual(["journal"]);
  });
});

describe("a file that may not grow (a real limit of the operating system)", () => {
  test("refuses and recovers by itself, and loses no answered change", async () => {
    // In blocks of 1,024 bytes. Compaction is postponed, so that an append reaches the limit.
    const limited = new Child([
      "bash",
      "-c",
      'ulimit -f 100; exec "$@"',
      "bash",
      process.execPath,
      child,
      path,
      "0",
      "1000000000",
    ]);
    await limited.received(1500);
    await limited.kill();
    const linesOf = (kind: string) => limited.lines.filter((line) => kind in line);
    const events = linesOf("event").map((line) => line["event"]);
    expect(events).toContain("unwritable");
    expect(events).toContain("writable");
    const { store, close } = await open();
    const calls = new Calls(store, policyOf(LIMITS));
    const asked = new Set(linesOf("asked").map((line) => line["asked"]));
    for (const line of linesOf("granted").filter(({ granted }) => !asked.has(granted))) {
      expect(await calls.ask(line["granted"] as string)).toMatchObject({ slot: { fence: line["fence"] } });
    }
    expect((await calls.snapshot())?.inFlight).toBeLessThanOrEqual(LIMITS.maxSlotPerHost);
    await close();
    expect((await stat(path)).size).toBeLessThan(100 * 1024);
  });
});

describe("the lock", () => {
  test("refuses a second process, with the process id of the first", async () => {
    const first = run("0");
    await first.received(2);
    await expect(open()).rejects.toThrow(new RegExp(`journal is in use by process ${first.process.pid}\\.`));
    const second = run("1");
    expect(await second.ended()).toContain("JournalLockedError");
    await first.kill();
    await (await open()).close();
  });

  test("refuses a second store in the same process, by any name of the file", async () => {
    const first = await open();
    await symlink(path, join(folder, "alias"));
    const alias = { path: join(folder, "alias"), clock: realClock, newTokenKey: randomUUID };
    await expect(openJournaledMemoryStore(alias)).rejects.toThrow(JournalLockedError);
    await first.close();
    const second = await openJournaledMemoryStore(alias);
    await second.close();
    expect((await readdir(folder)).sort()).toEqual(["alias", "journal"]);
  });

  test("is stale if its process id now belongs to another process", async () => {
    await leaveSign({ startedAt: "1" });
    await (await ProcessLock.take({ path, onLost: () => {} })).release();
    expect(await readdir(folder)).toEqual([]);
  });

  test.runIf(process.platform === "linux")("is stale if its process was killed and is a zombie", async () => {
    // The shell becomes a program that never waits for the child of the shell.
    const parent = spawn("sh", ["-c", "sleep 600 & echo $!; exec sleep 600"], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    try {
      const pid = Number((await once(parent.stdout, "data")).toString());
      const fields = () => readFileSync(`/proc/${pid}/stat`, "latin1").replace(/.*\) /s, "").split(" ");
      const file = await leaveSign({ pid, startedAt: fields()[19] });
      await expect(ProcessLock.take({ path, onLost: () => {} })).rejects.toThrow(`in use by process ${pid}`);
      process.kill(pid, "SIGKILL");
      await expect.poll(() => fields()[0]).toBe("Z");
      await (await ProcessLock.take({ path, onLost: () => {} })).release();
      await expect(stat(file)).rejects.toThrow("ENOENT");
    } finally {
      parent.kill("SIGKILL");
    }
  });

  test("that is stale goes to at most one of many processes at once, and the next attempt gets it", async () => {
    await leaveSign({ startedAt: "1" });
    const takers = await Promise.allSettled(
      Array.from({ length: 8 }, () => ProcessLock.take({ path, onLost: () => {} })),
    );
    const taken = takers.filter((taker) => taker.status === "fulfilled");
    expect(taken.length).toBeLessThanOrEqual(1);
    for (const { value } of taken) await value.release();
    await (await ProcessLock.take({ path, onLost: () => {} })).release();
    expect(await readdir(folder)).toEqual([]);
  });

  test("of a process in another container is watched: it is stale if the file is not touched, otherwise alive", async () => {
    const file = await leaveSign({ place: "elsewhere", host: "far", pid: 7 });
    const beat = setInterval(() => utimesSync(file, new Date(), new Date()), 10);
    try {
      await expect(ProcessLock.take({ path, beatMs: 100, onLost: () => {} })).rejects.toThrow(/process 7 on far/);
    } finally {
      clearInterval(beat);
    }
    await (await ProcessLock.take({ path, beatMs: 100, onLost: () => {} })).release();
  });

  test("that another process took over stops its holder immediately", async () => {
    const events: string[] = [];
    const { store, health, close } = await open(({ type }) => events.push(type));
    const sign = (await readdir(folder)).find((name) => name.includes(".lock."));
    await leaveSign({});
    await rm(join(folder, sign ?? ""));
    await expect.poll(() => health().isWritable, { timeout: 10_000 }).toBe(false);
    expect(events).toEqual(["opened", "lock-lost"]);
    await expect(new Calls(store, policyOf()).grant("a-1")).rejects.toThrow(/another process has taken it over/);
    await close();
  });

  test("is not removed if the file is not a lock", async () => {
    await writeFile(`${path}.lock.mine`, "mine");
    await expect(open()).rejects.toThrow(/is not a lock file; remove it/);
  });
});

test("only its owner may read the journal, and a missing folder is an error", async () => {
  await (await open()).close();
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  path = join(folder, "missing", "journal");
  await expect(open()).rejects.toThrow(/The journal .*missing\/journal cannot be opened: it does not exist/);
});
