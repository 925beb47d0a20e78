import { FairQueue, type HostStore } from "@slotkeeper/queue";
import {
  type JournalEvent,
  openJournaledMemoryStore,
  readFrames,
  StoreUnwritableError,
} from "@slotkeeper/server/internals";
import { FakeClock, settled } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { type DiskStep, MemoryDisk, noSpace } from "./memory-disk.ts";
import { Calls, policyOf } from "./store-calls.ts";

const POLICY = policyOf({ maxSlotPerHost: 50, maxSlotPerIp: -1, maxWaitersPerHost: 0 });

async function open(disk: MemoryDisk, { clock = new FakeClock(1e12), compactAfterBytes = 1e9 } = {}) {
  const events: JournalEvent[] = [];
  let made = 0;
  const opened = await openJournaledMemoryStore({
    path: "journal",
    disk,
    clock,
    newTokenKey: () => `key-${made++}`,
    retryMs: 1000,
    compactAfterBytes,
    onEvent: (event) => events.push(event),
  });
  return { ...opened, calls: new Calls(opened.store, POLICY), clock, events };
}

/** Blocks a step of the disk until the test lets it continue. */
class Gate {
  letThrough!: () => void;

  constructor(disk: MemoryDisk, step: DiskStep) {
    const passed = new Promise<void>((resolve) => {
      this.letThrough = resolve;
    });
    disk.onStep = (at) => (at === step ? passed : undefined);
  }
}

/** On its own host: calls for the same host wait for each other. */
const grantOf = (store: HostStore, n: number) => new Calls(store, POLICY, `host-${n}`).grant("a-1");
const frames = (disk: MemoryDisk) => readFrames(disk.content as Uint8Array).frames.length;

describe("group commit", () => {
  test("no answer is sent before the sync it depends on (JOURNAL1)", async () => {
    const disk = new MemoryDisk();
    const { calls, store, close } = await open(disk);
    const gate = new Gate(disk, "append");
    const answers: string[] = [];
    const granted = calls.grant("a-1").then(() => answers.push("granted"));
    await settled();
    // Another engine that asks for the same session, and one that only reads: both depend on what is not synced yet.
    const again = new Calls(store, POLICY).grant("a-1").then(() => answers.push("again"));
    const looked = store.read("host.example", undefined).then(() => answers.push("looked"));
    await settled();
    expect(answers).toEqual([]);
    gate.letThrough();
    await Promise.all([granted, again, looked]);
    expect(answers.sort()).toEqual(["again", "granted", "looked"]);
    await close();
  });

  test("all changes that arrive during one sync are written with the next", async () => {
    const disk = new MemoryDisk();
    const { calls, store, close } = await open(disk);
    const before = disk.steps.length;
    const gate = new Gate(disk, "append");
    const first = calls.grant("a-0");
    await settled();
    const others = Array.from({ length: 40 }, (_, n) => grantOf(store, n));
    await settled();
    gate.letThrough();
    await Promise.all([first, ...others]);
    expect(disk.steps.slice(before)).toEqual(["append", "append"]);
    await close();
  });

  test("a call that changes nothing does not wait", async () => {
    const disk = new MemoryDisk();
    const { store, calls, close } = await open(disk);
    disk.onStep = () => Promise.reject(new Error("no write was due"));
    await store.read("host.example", undefined);
    await expect(calls.renew("unknown")).resolves.toBeUndefined();
    await close();
  });

  test("changes of waiters and use are answered immediately, and are on the disk with the next sync or soon after", async () => {
    const disk = new MemoryDisk();
    const { calls, clock, store, close } = await open(disk);
    for (let n = 0; n < POLICY.slots; n++) await calls.grant(`a-${n}`);
    const kept = frames(disk);
    await calls.wait("b-1");
    await settled();
    expect(frames(disk)).toBe(kept);
    await clock.advanceAsync(50);
    expect(frames(disk)).toBe(kept + 1);
    await calls.wait("b-2");
    await grantOf(store, 1);
    const copy = await open(new MemoryDisk(disk.content), { clock });
    expect(await copy.calls.snapshot()).toMatchObject({ waiting: 2 });
    await copy.close();
    await calls.wait("b-3");
    await close();
    expect(clock.pending).toBe(0);
    const after = await open(new MemoryDisk(disk.content), { clock });
    expect(await after.calls.snapshot()).toMatchObject({ waiting: 3, inFlight: POLICY.slots });
    await after.close();
  });

  test("a report together with an arrival is on the disk before its answer", async () => {
    const disk = new MemoryDisk();
    const { calls, close } = await open(disk);
    for (let n = 0; n < POLICY.slots; n++) await calls.grant(`a-${n}`);
    const kept = frames(disk);
    await calls.report(503);
    expect(frames(disk)).toBe(kept + 1);
    await close();
  });
});

describe("a disk that cannot be written", () => {
  test("refuses the failed call and all later ones, reports its health, and recovers without loss", async () => {
    const disk = new MemoryDisk();
    const { calls, clock, health, events, close } = await open(disk);
    const before = await calls.grant("a-1");
    disk.onStep = () => Promise.reject(noSpace());
    const failing = [calls.grant("a-2"), calls.grant("a-3")];
    for (const call of failing) await expect(call).rejects.toThrow(StoreUnwritableError);
    expect(health()).toEqual({ isWritable: false, reason: noSpace().message, since: clock.now() });
    await expect(calls.grant("a-4")).rejects.toThrow(/journal cannot be written \(ENOSPC/);
    await expect(calls.release(before?.slotToken ?? "")).rejects.toThrow(StoreUnwritableError);
    await clock.advanceAsync(3500);
    expect(health().isWritable).toBe(false);
    disk.onStep = () => {};
    await clock.advanceAsync(1000);
    expect(health()).toEqual({ isWritable: true });
    expect(events.map(({ type }) => type)).toEqual(["opened", "unwritable", "writable"]);
    // The failed calls may have taken effect: repeated, they get one slot each, and the file has all of them.
    const slots = [await calls.grant("a-1"), await calls.grant("a-2"), await calls.grant("a-3")];
    await close();
    const after = await open(new MemoryDisk(disk.content), { clock });
    for (const [at, slot] of slots.entries()) {
      expect(await after.calls.grant(`a-${at + 1}`)).toMatchObject({ fence: slot?.fence });
    }
    await after.close();
    expect(disk.isOpen).toBe(0);
    expect(clock.pending).toBe(0);
  });

  test("leaves a journal that can be recovered after a crash at that moment", async () => {
    const disk = new MemoryDisk();
    const { calls, clock, close } = await open(disk);
    const kept = await calls.grant("a-1");
    disk.onStep = () => Promise.reject(noSpace());
    await expect(calls.grant("a-2")).rejects.toThrow(StoreUnwritableError);
    const after = await open(new MemoryDisk(disk.content), { clock });
    expect(after.events[0]).toMatchObject({ type: "opened", tornBytes: expect.any(Number) });
    expect(await after.calls.grant("a-1")).toEqual(kept);
    await after.close();
    await close();
  });

  test("at the start opens a store that grants nothing, and recovers", async () => {
    const disk = new MemoryDisk();
    disk.onStep = () => Promise.reject(noSpace());
    const { calls, clock, health, close } = await open(disk);
    expect(health().isWritable).toBe(false);
    await expect(calls.grant("a-1")).rejects.toThrow(StoreUnwritableError);
    disk.onStep = () => {};
    await clock.advanceAsync(1000);
    expect(await calls.grant("a-1")).toBeDefined();
    await close();
  });

  test("keeps sessions pending, blocked by the store, and grants when it is back", async () => {
    const disk = new MemoryDisk();
    const { store, clock, close } = await open(disk);
    let made = 0;
    const queue = new FairQueue({
      store,
      clock,
      newSessionId: () => `session-${made++}`,
      newSecret: () => `secret-${made++}`,
      instance: "test",
      config: { maxSlotPerHost: 2 },
    });
    disk.onStep = () => Promise.reject(noSpace());
    const begun = queue.begin({ host: "h", bucket: "a" });
    // A first call waits at most one `pollIntervalMs` for the store.
    await clock.advanceAsync(500);
    const first = await begun;
    if (first.result !== "pending") throw new Error(`Expected pending, got ${first.result}`);
    expect(await queue.poll(first.session, { waitMs: 0 })).toMatchObject({ result: "pending", blockedBy: "store" });
    const polled = queue.poll(first.session);
    disk.onStep = () => {};
    await clock.advanceAsync(2000);
    expect(await polled).toMatchObject({ result: "granted" });
    queue.close();
    await close();
  });

  test("a closed journal refuses every call, and keeps the calls in progress", async () => {
    const disk = new MemoryDisk();
    const { calls, close, clock } = await open(disk);
    const gate = new Gate(disk, "append");
    const granted = calls.grant("a-1");
    await settled();
    const closed = close();
    gate.letThrough();
    await closed;
    expect(await granted).toBeDefined();
    await expect(calls.grant("a-2")).rejects.toThrow(/it is closed/);
    expect([disk.isOpen, clock.pending]).toEqual([0, 0]);
  });
});

describe("compaction", () => {
  test("under load keeps every answer, and keeps the file near the size of the live state", async () => {
    const disk = new MemoryDisk();
    const clock = new FakeClock(1e12);
    const { calls, events, close } = await open(disk, { clock, compactAfterBytes: 20_000 });
    let largest = 0;
    const client = async (name: string) => {
      for (let n = 0; n < 60; n++) {
        const slot = await calls.grant(`${name}-${n}`);
        if (slot === undefined) throw new Error("Expected a slot");
        largest = Math.max(largest, disk.content?.length ?? 0);
        if (n < 59) await calls.release(slot.slotToken, 200);
        if (n % 10 === 0) clock.advance(5000);
      }
    };
    await Promise.all(Array.from({ length: 20 }, (_, n) => client(`c${n}`)));
    const compactions = events.filter(({ type }) => type === "compacted");
    expect(compactions.length).toBeGreaterThan(3);
    expect(largest).toBeLessThan(600_000);
    await close();
    const after = await open(new MemoryDisk(disk.content), { clock });
    const host = await after.calls.snapshot();
    expect(host?.leases.map(({ session }) => session).sort()).toEqual(
      Array.from({ length: 20 }, (_, n) => `c${n}-59`).sort(),
    );
    await after.close();
  });

  test("answers during a compaction wait for the frame after it", async () => {
    const disk = new MemoryDisk();
    const { store, close } = await open(disk, { compactAfterBytes: 1 });
    for (let n = 0; n < 8; n++) await grantOf(store, n);
    const gate = new Gate(disk, "commit");
    const granted = [8, 9, 10].map((n) => grantOf(store, n));
    for (let turn = 0; turn < 5; turn++) {
      await settled();
      granted.push(grantOf(store, 11 + turn));
    }
    gate.letThrough();
    expect((await Promise.all(granted)).every((slot) => slot !== undefined)).toBe(true);
    await close();
    const after = await open(new MemoryDisk(disk.content));
    expect(await after.store.totals()).toMatchObject({ hosts: 16, inFlight: 16 });
    await after.close();
  });

  test("without room for a successor continues with the old file", async () => {
    const disk = new MemoryDisk();
    const { calls, health, events, close } = await open(disk, { compactAfterBytes: 1 });
    disk.onStep = (step) => (step === "prepare" ? Promise.reject(noSpace()) : undefined);
    for (let n = 0; n < 20; n++) expect(await calls.grant(`a-${n}`)).toBeDefined();
    expect(health()).toEqual({ isWritable: true });
    expect(events.map(({ type }) => type)).toContain("compaction-failed");
    expect(frames(disk)).toBe(21);
    await close();
  });

  test("with a successor that could not replace the old file refuses writes until it can", async () => {
    const disk = new MemoryDisk();
    const { calls, clock, health, close } = await open(disk, { compactAfterBytes: 1 });
    for (let n = 0; n < 3; n++) await calls.grant(`a-${n}`);
    disk.onStep = (step) => (step === "commit" ? Promise.reject(new Error("EIO: i/o error, fsync")) : undefined);
    const calling = Array.from({ length: 20 }, (_, n) => calls.grant(`b-${n}`).catch(() => undefined));
    await Promise.all(calling);
    for (let n = 0; n < 20 && health().isWritable; n++) await calls.grant(`c-${n}`).catch(() => undefined);
    expect(health()).toMatchObject({ isWritable: false, reason: "EIO: i/o error, fsync" });
    disk.onStep = () => {};
    await clock.advanceAsync(1000);
    expect(await calls.grant("d-1")).toBeDefined();
    await close();
    expect(disk.isOpen).toBe(0);
  });
});
