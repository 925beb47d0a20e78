import { AcquireTimeoutError, ClosedError } from "slotkeeper";
import { settled } from "slotkeeper/testing";
import { TransferSlots } from "slotkeeper/transfers";
import { describe, expect, test } from "vitest";
import { outcome } from "../outcome.ts";
import { useTransferWorld } from "./transfer-world.ts";

const world = useTransferWorld();

describe("acquiring and releasing", () => {
  test("a download slot is counted while it is held and free again after", async () => {
    const slots = world().transfers({ maxDownloads: 1 });
    const slot = await slots.acquireDownload();
    expect(slots.stats().downloadsActive).toBe(1);
    expect(slot.release()).toBe(true);
    expect(slots.stats().downloadsActive).toBe(0);
    expect((await slots.acquireDownload({ timeoutMs: 0 })).release()).toBe(true);
  });

  test("an upload slot takes both tiers and gives both back", async () => {
    const slots = world().transfers({ maxUploads: 1 });
    const slot = await slots.acquireUpload("ann");
    expect(slots.tryAcquireUpload("ann")).toBeUndefined();
    expect(slots.tryAcquireUpload("bob")).toBeUndefined();
    slot.release();
    const bob = slots.tryAcquireUpload("bob");
    expect(bob?.release()).toBe(true);
    expect(slots.tryAcquireUpload("ann")?.release()).toBe(true);
  });

  test("downloads and uploads do not take each other's slots", async () => {
    const slots = world().transfers({ maxDownloads: 1, maxUploads: 1 });
    const held = [await slots.acquireDownload(), await slots.acquireUpload("ann")];
    expect(slots.stats()).toMatchObject({ downloadsActive: 1, uploadsActive: 1 });
    for (const slot of held) slot.release();
  });

  test("ten downloads, ten uploads and one upload per user are the defaults", async () => {
    const slots = world().transfers();
    expect(slots.stats()).toEqual({
      downloadsActive: 0,
      downloadsMax: 10,
      uploadsActive: 0,
      uploadsMax: 10,
      userSlots: 0,
    });
    const ann = await slots.acquireUpload("ann");
    expect(slots.tryAcquireUpload("ann")).toBeUndefined();
    ann.release();
  });

  test("run holds a slot for as long as the work takes, and gives it back when the work fails", async () => {
    const slots = world().transfers({ maxDownloads: 1, maxUploads: 1 });
    expect(await slots.runDownload(() => slots.stats().downloadsActive)).toBe(1);
    expect(await slots.runUpload("ann", () => slots.stats().uploadsActive)).toBe(1);
    const failure = new Error("peer went away");
    await expect(slots.runUpload("ann", () => Promise.reject(failure))).rejects.toBe(failure);
    await expect(slots.runDownload(() => Promise.reject(failure))).rejects.toBe(failure);
    expect(slots.stats()).toMatchObject({ downloadsActive: 0, uploadsActive: 0 });
  });

  test("using gives the slot back", async () => {
    const slots = world().transfers({ maxDownloads: 1 });
    {
      using _slot = await slots.acquireDownload();
      expect(slots.stats().downloadsActive).toBe(1);
    }
    expect(slots.stats().downloadsActive).toBe(0);
  });
});

describe("blocking", () => {
  test.each([
    { name: "a single slot is free", maxDownloads: 1, asked: 1, blocked: 0 },
    { name: "all slots are used", maxDownloads: 2, asked: 3, blocked: 1 },
    { name: "0 means unlimited", maxDownloads: 0, asked: 100, blocked: 0 },
  ])("$name: $blocked of $asked downloads block", async ({ maxDownloads, asked, blocked }) => {
    const slots = world().transfers({ maxDownloads });
    const waits = Array.from({ length: asked }, () => outcome(slots.acquireDownload()));
    await settled();
    expect(waits.filter((wait) => wait.status === "pending")).toHaveLength(blocked);
    expect(slots.stats().downloadsActive).toBe(asked - blocked);
    for (const wait of waits) {
      wait.value.release();
      await settled();
    }
  });

  test("a blocked acquire goes on when a slot is released", async () => {
    const slots = world().transfers({ maxUploads: 1 });
    const ann = await slots.acquireUpload("ann");
    const bob = outcome(slots.acquireUpload("bob"));
    await settled();
    expect(bob.status).toBe("pending");
    ann.release();
    await settled();
    bob.value.release();
  });

  test("a wait that takes too long ends with AcquireTimeoutError and takes nothing", async () => {
    const slots = world().transfers({ maxDownloads: 1 });
    const held = await slots.acquireDownload();
    const late = outcome(slots.acquireDownload({ timeoutMs: 500 }));
    await world().clock.advanceAsync(500);
    expect(late.reason).toBeInstanceOf(AcquireTimeoutError);
    held.release();
    expect(slots.stats().downloadsActive).toBe(0);
  });

  test("one time limit covers both stages", async () => {
    const { clock } = world();
    const slots = world().transfers({ maxUploads: 1 });
    const global = await slots.acquireUpload("zoe");
    const first = outcome(slots.acquireUpload("ann"));
    const second = outcome(slots.acquireUpload("ann", { timeoutMs: 1000 }));
    await clock.advanceAsync(600);
    global.release();
    await settled();
    const again = outcome(slots.acquireUpload("zoe"));
    first.value.release();
    await clock.advanceAsync(399);
    expect(second.status).toBe("pending");
    await clock.advanceAsync(1);
    expect(second.reason).toMatchObject({ code: "ACQUIRE_TIMEOUT", waitedMs: 1000 });
    again.value.release();
    await settled();
  });
});

describe("users", () => {
  test("a user's upload leaves other users their turn, but not the same user", async () => {
    const slots = world().transfers();
    const ann = await slots.acquireUpload("ann");
    const bob = await slots.acquireUpload("bob");
    const second = outcome(slots.acquireUpload("ann"));
    await settled();
    expect(second.status).toBe("pending");
    ann.release();
    await settled();
    second.value.release();
    bob.release();
  });

  test("with no limit in all there is still one upload per user, and it is counted", async () => {
    const slots = world().transfers({ maxUploads: 0 });
    const held = await Promise.all(Array.from({ length: 100 }, (_, i) => slots.acquireUpload(`user ${i}`)));
    expect(slots.tryAcquireUpload("user 7")).toBeUndefined();
    expect(slots.stats()).toMatchObject({ uploadsActive: 100, uploadsMax: 0, userSlots: 100 });
    for (const slot of held) slot.release();
  });

  test("a user's backlog holds no global slot", async () => {
    const slots = world().transfers({ maxUploads: 2 });
    const ann = await slots.acquireUpload("ann");
    const backlog = Array.from({ length: 1000 }, () => outcome(slots.acquireUpload("ann")));
    const bob = await slots.acquireUpload("bob", { timeoutMs: 0 });
    expect(slots.stats().uploadsActive).toBe(2);
    bob.release();
    ann.release();
    for (const wait of backlog) {
      await settled();
      wait.value.release();
    }
  });

  test.each(["", " ", "Ann", "ann", "__proto__", "constructor", "😀", "a\u0000b", "\ud800", "a/b?c=d"])(
    "%j is a user like any other",
    async (user) => {
      const slots = world().transfers();
      const slot = await slots.acquireUpload(user);
      expect(slots.tryAcquireUpload(user)).toBeUndefined();
      const other = await slots.acquireUpload(`${user}2`, { timeoutMs: 0 });
      expect(slots.stats()).toMatchObject({ uploadsActive: 2, userSlots: 2 });
      slot.release();
      other.release();
    },
  );

  test.each([undefined, null, 7, {}] as unknown as string[])(
    "%j is no user: it would slip past the limit per user",
    async (user) => {
      const slots = world().transfers();
      await expect(slots.acquireUpload(user)).rejects.toThrow(/^Expected `user` to be a string, got /);
      await expect(slots.runUpload(user, () => 1)).rejects.toBeInstanceOf(TypeError);
      expect(() => slots.tryAcquireUpload(user)).toThrow(TypeError);
      expect(slots.stats()).toMatchObject({ uploadsActive: 0, userSlots: 0 });
    },
  );
});

describe("releasing what is not held", () => {
  test("a second release frees no other slot", async () => {
    const slots = world().transfers({ maxDownloads: 1, maxUploads: 1 });
    const download = await slots.acquireDownload();
    const upload = await slots.acquireUpload("ann");
    expect([download.release(), upload.release()]).toEqual([true, true]);
    const stranger = await slots.acquireUpload("ann", { timeoutMs: 0 });
    const other = await slots.acquireDownload({ timeoutMs: 0 });
    expect([download.release(), upload.release()]).toEqual([false, false]);
    expect(slots.stats()).toMatchObject({ downloadsActive: 1, uploadsActive: 1 });
    expect(slots.tryAcquireUpload("ann")).toBeUndefined();
    expect(slots.tryAcquireDownload()).toBeUndefined();
    stranger.release();
    other.release();
  });

  test("without a slot there is nothing to release with: the manager itself cannot", () => {
    const slots = world().transfers();
    expect(Object.getOwnPropertyNames(TransferSlots.prototype).filter((name) => /release/i.test(name))).toEqual([]);
    expect(slots.stats()).toMatchObject({ downloadsActive: 0, uploadsActive: 0 });
  });

  test("a late release after the ttl took the slot back frees no other slot", async () => {
    const slots = world().transfers({ maxUploads: 1, ttlMs: 1000 });
    const lost = await slots.acquireUpload("ann");
    const next = outcome(slots.acquireUpload("ann"));
    await world().clock.advanceAsync(1000);
    expect(lost.released).toBe(true);
    expect(lost.release()).toBe(false);
    expect(slots.tryAcquireUpload("ann")).toBeUndefined();
    next.value.release();
  });
});

describe("statistics", () => {
  test("report what is held at every step", async () => {
    const slots = world().transfers({ maxDownloads: 3, maxUploads: 4 });
    const expectStats = (downloadsActive: number, uploadsActive: number, userSlots: number) =>
      expect(slots.stats()).toEqual({ downloadsActive, downloadsMax: 3, uploadsActive, uploadsMax: 4, userSlots });
    expectStats(0, 0, 0);
    const first = await slots.acquireDownload();
    const second = await slots.acquireDownload();
    expectStats(2, 0, 0);
    const ann = await slots.acquireUpload("ann");
    const bob = await slots.acquireUpload("bob");
    const waiting = outcome(slots.acquireUpload("ann"));
    expectStats(2, 2, 2);
    first.release();
    bob.release();
    expectStats(1, 1, 2);
    ann.release();
    await settled();
    expectStats(1, 1, 2);
    waiting.value.release();
    second.release();
    expectStats(0, 0, 2);
    expect(slots.sweep(0)).toBe(2);
    expectStats(0, 0, 0);
  });
});

describe("options", () => {
  test("everything that is wrong is said at once", () => {
    const options = { maxDownloads: -1, maxUploads: 1.5, uploadsPerUser: "1", maxuploads: 3, clock: null };
    expect(() => new TransferSlots(options as unknown as object)).toThrow(
      new TypeError(
        "Expected `maxDownloads` to be an integer from 0 up, got -1; " +
          "Expected `maxUploads` to be an integer from 0 up, got 1.5; " +
          'Expected `uploadsPerUser` to be an integer from 0 up, got "1"; ' +
          "Unknown option `maxuploads` (known: maxUploads, maxDownloads, uploadsPerUser, maxWaiters, ttlMs, " +
          "acquireTimeoutMs, traceTimeouts, clock, idleMs, sweepEveryMs, abortOnExpiry, onEvent); " +
          "Expected `clock` to be an object with now(), setTimer(), clearTimer(), got null",
      ),
    );
  });

  test.each([
    { maxDownloads: -1 },
    { maxUploads: Number.NaN },
    { maxUploads: Infinity },
    { uploadsPerUser: -1 },
    { idleMs: -1 },
    { sweepEveryMs: 0 },
    { sweepEveryMs: 2 ** 31 },
    { ttlMs: 0 },
    { maxWaiters: -1 },
  ])("%o is a RangeError that names the field", (options) => {
    expect(() => new TransferSlots(options)).toThrow(RangeError);
    expect(() => new TransferSlots(options)).toThrow(`\`${Object.keys(options)[0]}\``);
  });

  test.each([
    { options: { width: 2 }, message: "Unknown option `width`" },
    { options: { timeoutMs: -1 }, message: "Expected `timeoutMs` to be a number from 0 up, got -1" },
    { options: { signal: "stop" }, message: 'Expected `signal` to be an AbortSignal, got "stop"' },
    { options: 5, message: "Expected `options` to be an object, got 5" },
  ])("an acquire with $options is refused and takes nothing", async ({ options, message }) => {
    const slots = world().transfers();
    await expect(slots.acquireUpload("ann", options as object)).rejects.toThrow(message);
    await expect(slots.acquireDownload(options as object)).rejects.toThrow(message);
    await expect(slots.runDownload(() => 1, options as object)).rejects.toThrow(message);
    expect(slots.stats()).toMatchObject({ downloadsActive: 0, uploadsActive: 0, userSlots: 0 });
  });

  test("events say which kind of transfer they are about", async () => {
    const seen: string[] = [];
    const slots = world().transfers({ onEvent: ({ type, name }) => seen.push(`${name} ${type}`) });
    (await slots.acquireDownload()).release();
    (await slots.acquireUpload("ann")).release();
    expect(seen).toEqual(["downloads acquired", "downloads released", "uploads acquired", "uploads released"]);
  });
});

test("after close, every call fails because the slot manager is closed", async () => {
  const slots = world().transfers();
  slots.close();
  slots.close();
  for (const refused of [slots.acquireDownload(), slots.acquireUpload("ann"), slots.runDownload(() => 1)]) {
    await expect(refused).rejects.toBeInstanceOf(ClosedError);
    await expect(refused).rejects.toThrow("slot manager closed");
  }
  expect([slots.tryAcquireDownload(), slots.tryAcquireUpload("ann")]).toEqual([undefined, undefined]);
});
