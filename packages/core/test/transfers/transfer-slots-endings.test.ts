import { ClosedError } from "slotkeeper";
import { settled } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { outcome } from "../outcome.ts";
import { useTransferWorld } from "./transfer-world.ts";

const world = useTransferWorld();
const MINUTE_MS = 60_000;

describe("a cancelled wait", () => {
  test("for a download rejects with the signal's reason and consumes nothing", async () => {
    const slots = world().transfers({ maxDownloads: 1 });
    const held = await slots.acquireDownload();
    const stop = new AbortController();
    const wait = outcome(slots.acquireDownload({ signal: stop.signal }));
    await settled();
    const reason = new Error("user gave up");
    stop.abort(reason);
    await settled();
    expect(wait.reason).toBe(reason);
    held.release();
    expect(slots.stats().downloadsActive).toBe(0);
    (await slots.acquireDownload({ timeoutMs: 0 })).release();
  });

  test("for the user's turn leaves the user's turn to the next", async () => {
    const slots = world().transfers();
    const held = await slots.acquireUpload("ann");
    const stop = new AbortController();
    const cancelled = outcome(slots.acquireUpload("ann", { signal: stop.signal }));
    const next = outcome(slots.acquireUpload("ann"));
    stop.abort();
    held.release();
    await settled();
    expect([cancelled.status, next.status]).toEqual(["rejected", "fulfilled"]);
    next.value.release();
  });

  test("for a global slot frees the user's slot", async () => {
    const slots = world().transfers({ maxUploads: 1 });
    const held = await slots.acquireUpload("zoe");
    const stop = new AbortController();
    const cancelled = outcome(slots.acquireUpload("ann", { signal: stop.signal }));
    const next = outcome(slots.acquireUpload("ann"));
    await settled();
    stop.abort();
    await settled();
    expect([cancelled.status, next.status]).toEqual(["rejected", "pending"]);
    held.release();
    await settled();
    next.value.release();
    (await slots.acquireUpload("ann", { timeoutMs: 0 })).release();
  });

  test("by a signal that was aborted before takes nothing, though a slot is free", async () => {
    const slots = world().transfers();
    const signal = AbortSignal.abort("no");
    await expect(slots.acquireUpload("ann", { signal })).rejects.toBe("no");
    await expect(slots.acquireDownload({ signal })).rejects.toBe("no");
    expect(slots.stats()).toMatchObject({ downloadsActive: 0, uploadsActive: 0 });
  });
});

describe("a global stage that fails", () => {
  test("in time frees the user's slot", async () => {
    const slots = world().transfers({ maxUploads: 1 });
    const held = await slots.acquireUpload("zoe");
    const late = outcome(slots.acquireUpload("ann", { timeoutMs: 100 }));
    await world().clock.advanceAsync(100);
    expect(late.reason).toMatchObject({ code: "ACQUIRE_TIMEOUT" });
    held.release();
    (await slots.acquireUpload("ann", { timeoutMs: 0 })).release();
  });

  test("since too many wait frees the user's slot", async () => {
    const slots = world().transfers({ maxUploads: 1, maxWaiters: 1 });
    const held = await slots.acquireUpload("zoe");
    const bob = outcome(slots.acquireUpload("bob"));
    await settled();
    await expect(slots.acquireUpload("ann")).rejects.toMatchObject({ code: "QUEUE_FULL" });
    held.release();
    await settled();
    bob.value.release();
    (await slots.acquireUpload("ann", { timeoutMs: 0 })).release();
  });
});

describe("close", () => {
  test("ends blocked downloads and uploads in both stages, and only those", async () => {
    const slots = world().transfers({ maxDownloads: 1, maxUploads: 1 });
    const held = [await slots.acquireDownload(), await slots.acquireUpload("zoe")];
    const waits = [
      outcome(slots.acquireDownload()),
      outcome(slots.acquireUpload("zoe")),
      outcome(slots.acquireUpload("ann")),
      outcome(slots.runUpload("ann", () => "never")),
    ];
    await settled();
    slots.close();
    await settled();
    for (const wait of waits) {
      expect(wait.reason).toBeInstanceOf(ClosedError);
      expect(wait.reason).toMatchObject({ message: "slot manager closed", code: "CLOSED" });
    }
    expect(slots.stats()).toMatchObject({ downloadsActive: 1, uploadsActive: 1 });
    expect(held.map((slot) => slot.release())).toEqual([true, true]);
    expect(slots.stats()).toMatchObject({ downloadsActive: 0, uploadsActive: 0 });
  });

  test.each([0, 1, 2, 3, 4, 5, 6, 7, 8])(
    "%i turns after a hand-over between the stages, leaves nothing held",
    async (turns) => {
      const slots = world().transfers({ maxUploads: 2 });
      const [ann, bob] = [await slots.acquireUpload("ann"), await slots.acquireUpload("bob")];
      const next = outcome(slots.acquireUpload("ann"));
      ann.release();
      await settled(turns);
      slots.close();
      await settled();
      expect(next.status).not.toBe("pending");
      if (next.status === "fulfilled") next.value.release();
      bob.release();
      expect(slots.stats().uploadsActive).toBe(0);
    },
  );

  test("stops the sweeping", async () => {
    const slots = world().transfers();
    (await slots.acquireUpload("ann")).release();
    expect(world().clock.pending).toBe(1);
    slots.close();
    expect(world().clock.pending).toBe(0);
  });
});

describe("sweeping", () => {
  test("drops idle users after a quarter of an hour, keeps those in use or waited for", async () => {
    const { clock } = world();
    const slots = world().transfers({ maxUploads: 1 });
    const ann = await slots.acquireUpload("ann");
    const bob = outcome(slots.acquireUpload("bob"));
    await settled();
    expect(slots.tryAcquireUpload("idle")).toBeUndefined();
    expect(slots.stats().userSlots).toBe(3);
    await clock.advanceAsync(30 * MINUTE_MS);
    expect(slots.stats().userSlots).toBe(2);
    expect(slots.tryAcquireUpload("ann")).toBeUndefined();
    ann.release();
    await settled();
    bob.value.release();
    await clock.advanceAsync(30 * MINUTE_MS);
    expect(slots.stats().userSlots).toBe(0);
  });

  test("goes by the interval and the idle time that were asked for", async () => {
    const { clock } = world();
    const slots = world().transfers({ idleMs: 1000, sweepEveryMs: 400 });
    (await slots.acquireUpload("ann")).release();
    await clock.advanceAsync(800);
    expect(slots.stats().userSlots).toBe(1);
    await clock.advanceAsync(400);
    expect(slots.stats().userSlots).toBe(0);
  });

  test("its timer does not keep a process alive", async () => {
    const slots = world().transfers();
    (await slots.acquireUpload("ann")).release();
    expect([world().clock.pending, world().clock.keepingAlive]).toEqual([1, 0]);
  });

  test("by hand says how many were dropped, and refuses a bad idle time", async () => {
    const slots = world().transfers();
    for (const user of ["ann", "bob", "cem"]) (await slots.acquireUpload(user)).release();
    await world().clock.advanceAsync(5000);
    (await slots.acquireUpload("ann")).release();
    expect(slots.sweep(5000)).toBe(2);
    expect(slots.sweep()).toBe(0);
    expect(() => slots.sweep(-1)).toThrow(RangeError);
    expect(slots.stats().userSlots).toBe(1);
  });

  test("a slot that was handed out before its user was swept is still that user's only one", async () => {
    const slots = world().transfers();
    (await slots.acquireUpload("ann")).release();
    slots.sweep(0);
    const first = slots.acquireUpload("ann");
    slots.sweep(0);
    const second = outcome(slots.acquireUpload("ann"));
    slots.sweep(0);
    (await first).release();
    slots.sweep(0);
    expect(slots.tryAcquireUpload("ann")).toBeUndefined();
    await settled();
    second.value.release();
  });
});
