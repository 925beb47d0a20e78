import { AcquireTimeoutError, ClosedError } from "slotkeeper";
import { settled } from "slotkeeper/testing";
import { type LimitsRecord, MediaSlots, type MediaSlotsConfig, mediaConfigFromEnv } from "slotkeeper/transfers";
import { describe, expect, test } from "vitest";
import { outcome } from "../outcome.ts";
import { FakeMemory, GB } from "./fake-memory.ts";
import { useTransferWorld } from "./transfer-world.ts";

const world = useTransferWorld();
const machine = new FakeMemory({ totalBytes: 8 * GB });

describe("uploads and chunks", () => {
  test("have the calculated limits, in all and per user", async () => {
    const slots = world().media({ availableGb: 2, reservationPercent: 50 });
    const uploads = ["a", "a", "b", "b", "c", "c"].map((user) => slots.tryAcquireUpload(user));
    expect(uploads.every((slot) => slot !== undefined)).toBe(true);
    expect([slots.tryAcquireUpload("d"), slots.tryAcquireUpload("a")]).toEqual([undefined, undefined]);
    const chunks = ["a", "a", "a"].map((user) => slots.tryAcquireChunk(user));
    expect(chunks.every((slot) => slot !== undefined)).toBe(true);
    expect(slots.tryAcquireChunk("a")).toBeUndefined();
    for (const slot of [...uploads, ...chunks]) slot?.release();
  });

  test("wait for the user's turn first: a user's backlog leaves the others theirs", async () => {
    const slots = world().media({ availableGb: 2, reservationPercent: 50 });
    const backlog = Array.from({ length: 100 }, () => outcome(slots.acquireUpload("greedy")));
    await settled();
    expect(slots.config().use.uploads).toEqual({ inUse: 2, waiting: 98, users: 1 });
    const other = await slots.acquireUpload("other", { timeoutMs: 0 });
    other.release();
    for (let served = 0; served < backlog.length; served++) {
      backlog[served]?.value.release();
      await settled();
    }
  });

  test("take a signal and a time limit, and give back what a failed wait had", async () => {
    const slots = world().media({ availableGb: 0.1 });
    const held = [await slots.acquireUpload("a"), await slots.acquireUpload("b")];
    const stop = new AbortController();
    const aborted = outcome(slots.acquireUpload("c", { signal: stop.signal }));
    const late = outcome(slots.acquireUpload("c", { timeoutMs: 10 }));
    await settled();
    stop.abort("gone");
    await world().clock.advanceAsync(10);
    expect(aborted.reason).toBe("gone");
    expect(late.reason).toBeInstanceOf(AcquireTimeoutError);
    for (const slot of held) slot.release();
    expect(slots.config().use.uploads).toMatchObject({ inUse: 0, waiting: 0 });
  });

  test("run for as long as the work takes", async () => {
    const slots = world().media({ availableGb: 8 });
    expect(await slots.runUpload("a", () => slots.config().use.uploads.inUse)).toBe(1);
    expect(await slots.runChunk("a", () => slots.config().use.chunks.inUse)).toBe(1);
    const failure = new Error("disk full");
    await expect(slots.runChunk("a", () => Promise.reject(failure))).rejects.toBe(failure);
    expect(slots.config().use).toEqual({
      uploads: { inUse: 0, waiting: 0, users: 1 },
      chunks: { inUse: 0, waiting: 0, users: 1 },
    });
  });

  test("sweep drops the idle users of both kinds", async () => {
    const slots = world().media({ availableGb: 8 });
    (await slots.acquireUpload("a")).release();
    (await slots.acquireChunk("a")).release();
    const held = await slots.acquireChunk("b");
    expect(slots.sweep()).toBe(0);
    expect(slots.sweep(0)).toBe(2);
    expect(slots.config().use.chunks.users).toBe(1);
    held.release();
  });

  test("no user, or an undefined one, is refused", async () => {
    const slots = world().media({ availableGb: 8 });
    await expect(slots.acquireChunk(undefined as unknown as string)).rejects.toThrow("Expected `user` to be a string");
    await expect(slots.acquireUpload("a", { width: 2 } as object)).rejects.toThrow("Unknown option `width`");
  });

  test("close ends the waits in either stage; holders may still release", async () => {
    const slots = world().media({ availableGb: 0.1 });
    const held = [await slots.acquireUpload("a"), await slots.acquireUpload("a")];
    const waits = [outcome(slots.acquireUpload("a")), outcome(slots.acquireUpload("b"))];
    await settled();
    slots.close();
    slots.close();
    await settled();
    for (const wait of waits) expect(wait.reason).toBeInstanceOf(ClosedError);
    await expect(slots.acquireChunk("a")).rejects.toThrow("slot manager closed");
    expect(held.map((slot) => slot.release())).toEqual([true, true]);
  });
});

describe("the record", () => {
  test("is written once, with the fields that dashboards know", () => {
    const records: LimitsRecord[] = [];
    const config = mediaConfigFromEnv({ MEDIA__SERVER_MEMORY_GB: "8.0" }, machine);
    world().media({ ...config, logger: { info: (record) => records.push(record) } });
    expect(records).toEqual([
      {
        available_memory_gb: 8,
        usable_memory_gb: 4.8,
        global_upload_limit: 30,
        global_chunk_limit: 60,
        per_user_upload_limit: 3,
        per_user_chunk_limit: 6,
        memory_based_limits: true,
        message: "dynamic concurrency limits calculated",
      },
    ]);
  });

  test("keeps the logger its own object, and survives a logger that throws", () => {
    class Logger {
      readonly records: LimitsRecord[] = [];
      info(record: LimitsRecord): void {
        this.records.push(record);
        throw new Error("disk full");
      }
    }
    const logger = new Logger();
    world().media({ memoryBased: false, logger });
    expect(logger.records).toMatchObject([{ memory_based_limits: false, global_upload_limit: 10 }]);
  });
});

describe("config()", () => {
  test("shows where every value comes from", () => {
    const env = { SERVER_MEMORY_GB: "16", MEDIA__MEMORY_RESERVATION_PERCENT: "30" };
    const slots = world().media({ ...mediaConfigFromEnv(env, machine), maxChunkMb: 5 });
    expect(slots.config().sources).toEqual({
      availableGb: "SERVER_MEMORY_GB",
      memoryBased: "default",
      reservationPercent: "MEDIA__MEMORY_RESERVATION_PERCENT",
      maxChunkMb: "given",
      directUploadMb: "default",
      fallbackGlobalUploads: "default",
      fallbackGlobalChunks: "default",
      fallbackPerUserUploads: "default",
      fallbackPerUserChunks: "default",
      globalUploads: "maximum",
      globalChunks: "maximum",
      perUserUploads: "maximum",
      perUserChunks: "maximum",
    });
    expect(slots.config().settings).toMatchObject({ availableGb: 16, reservationPercent: 30, maxChunkMb: 5 });
  });

  test.each([
    { config: { availableGb: 8 }, globalUploads: "memory", perUserUploads: "memory" },
    { config: { availableGb: 2 }, globalUploads: "memory", perUserUploads: "minimum" },
    { config: { availableGb: 0.1 }, globalUploads: "minimum", perUserUploads: "minimum" },
    { config: { memoryBased: false }, globalUploads: "fallback", perUserUploads: "fallback" },
  ])("says that the limits of $config are by $globalUploads", ({ config, ...sources }) => {
    expect(world().media(config).config().sources).toMatchObject(sources);
  });

  test("without a governor says so, and that the current limits are the calculated ones", () => {
    const { governor, limits, current } = world().media({ availableGb: 8 }).config();
    expect(governor).toBeUndefined();
    expect(limits).toMatchObject(current);
    expect(world().clock.pending).toBe(0);
  });

  test("does not follow what becomes of the object it was made from", () => {
    const config = { availableGb: 8, maxChunkMb: 6 };
    const slots = world().media(config);
    config.maxChunkMb = 500;
    expect(slots.config().settings.maxChunkMb).toBe(6);
  });
});

describe("options", () => {
  test("everything that is wrong is said at once", () => {
    const config = {
      memoryBased: "yes",
      governor: { everyMs: 0, highWater: 0.5, lowWater: 0.6, every: 1 },
      logger: {},
      idle: 5,
    };
    expect(() => new MediaSlots(config as unknown as MediaSlotsConfig)).toThrow(
      new TypeError(
        'Expected `memoryBased` to be true or false, got "yes"; ' +
          "Expected `logger` to be an object with info(), got [object Object]; " +
          "Unknown option `idle` (known: idleMs, availableGb, memoryBased, reservationPercent, directUploadMb, " +
          "fallbackPerUserUploads, fallbackPerUserChunks, traces, acquireTimeoutMs, abortOnExpiry, maxWaiters, " +
          "traceTimeouts, onEvent, sweepEveryMs, governor, logger, probe, maxChunkMb, fallbackGlobalUploads, " +
          "fallbackGlobalChunks, ttlMs, clock); " +
          "Expected `availableGb` to be given, since the limits are memory-based; " +
          "Expected `governor.everyMs` to be a number from 1 to 2147483647, got 0; " +
          "Unknown option `governor.every` (known: everyMs, highWater, lowWater); " +
          "Expected `governor.lowWater` to be below `governor.highWater`, got 0.6 and 0.5; " +
          "Expected `availableGb` to be given, for the `governor`",
      ),
    );
  });

  test.each([
    { governor: { highWater: 1.2 }, field: "governor.highWater" },
    { governor: { lowWater: 0 }, field: "governor.lowWater" },
    { governor: { everyMs: Infinity }, field: "governor.everyMs" },
    { governor: { lowWater: 0.9 }, field: "governor.lowWater" },
  ])("$governor is a RangeError that names $field", ({ governor, field }) => {
    expect(() => new MediaSlots({ availableGb: 8, governor })).toThrow(RangeError);
    expect(() => new MediaSlots({ availableGb: 8, governor })).toThrow(`\`${field}\``);
  });

  test.each([undefined, null, 5])("%s is no config", (config) => {
    expect(() => new MediaSlots(config as unknown as MediaSlotsConfig)).toThrow("Expected `config` to be an object");
  });

  test("a governor where the host does not report its memory is refused", () => {
    const config = { availableGb: 8, governor: {}, probe: new FakeMemory() };
    expect(() => new MediaSlots(config)).toThrow("Expected a host or a `probe` that returns its resident memory");
  });
});
