import { mediaConfigFromEnv, memoryLimits } from "slotkeeper/transfers";
import { describe, expect, test } from "vitest";
import { FakeMemory, GB } from "./fake-memory.ts";

const machine = new FakeMemory({ totalBytes: 8 * GB });

describe("a config from the environment", () => {
  test("has the defaults where nothing is set, and the memory detected", () => {
    const { traces, ...settings } = mediaConfigFromEnv({}, machine);
    expect(settings).toEqual({
      memoryBased: true,
      availableGb: 8,
      reservationPercent: 40,
      maxChunkMb: 6,
      directUploadMb: 0,
      fallbackGlobalUploads: 10,
      fallbackGlobalChunks: 20,
      fallbackPerUserUploads: 3,
      fallbackPerUserChunks: 5,
    });
    expect(traces.availableGb).toEqual({ value: 8, source: "machine" });
  });

  test("takes every variable", () => {
    const env = {
      MEDIA__MEMORY_BASED_LIMITS: "false",
      MEDIA__SERVER_MEMORY_GB: "8.5",
      MEDIA__MEMORY_RESERVATION_PERCENT: "12.5",
      MEDIA__MAX_CHUNK_MB: "16",
      MEDIA__DIRECT_UPLOAD_MB: "32",
      MEDIA__FALLBACK_GLOBAL_UPLOADS: "11",
      MEDIA__FALLBACK_GLOBAL_CHUNKS: "21",
      MEDIA__FALLBACK_PER_USER_UPLOADS: "4",
      MEDIA__FALLBACK_PER_USER_CHUNKS: "6",
    };
    const { traces, ...settings } = mediaConfigFromEnv(env, machine);
    expect(settings).toEqual({
      memoryBased: false,
      availableGb: 8.5,
      reservationPercent: 12.5,
      maxChunkMb: 16,
      directUploadMb: 32,
      fallbackGlobalUploads: 11,
      fallbackGlobalChunks: 21,
      fallbackPerUserUploads: 4,
      fallbackPerUserChunks: 6,
    });
    expect(new Set(Object.values(traces).map((trace) => trace?.source))).toEqual(new Set(Object.keys(env)));
  });

  test.each([
    ["true", true],
    ["TRUE", true],
    ["1", true],
    ["false", false],
    ["False", false],
    ["0", false],
  ])("%s switches the memory-based limits to %s", (text, memoryBased) => {
    expect(mediaConfigFromEnv({ MEDIA__MEMORY_BASED_LIMITS: text }, machine).memoryBased).toBe(memoryBased);
  });

  test("is what memoryLimits takes as it is", () => {
    expect(memoryLimits(mediaConfigFromEnv({}, machine))).toMatchObject({ globalUploads: 30, globalChunks: 60 });
    expect(memoryLimits(mediaConfigFromEnv({ MEDIA__MEMORY_BASED_LIMITS: "false" }, machine))).toMatchObject({
      globalUploads: 10,
      globalChunks: 20,
      perUserUploads: 3,
      perUserChunks: 5,
      memoryBased: false,
    });
  });

  test("of this process can be had without arguments", () => {
    expect(mediaConfigFromEnv().availableGb).toBeGreaterThan(0);
  });
});

describe("a malformed variable", () => {
  test.each([
    ["MEDIA__MEMORY_BASED_LIMITS", "yes", "true or false"],
    ["MEDIA__MEMORY_BASED_LIMITS", "", "true or false"],
    ["MEDIA__SERVER_MEMORY_GB", "-2", "a finite number from 0 up"],
    ["MEDIA__MEMORY_RESERVATION_PERCENT", "100", "a number from 0 to less than 100"],
    ["MEDIA__MEMORY_RESERVATION_PERCENT", "-1", "a number from 0 to less than 100"],
    ["MEDIA__MEMORY_RESERVATION_PERCENT", "40%", "a number from 0 to less than 100"],
    ["MEDIA__MEMORY_RESERVATION_PERCENT", "", "a number from 0 to less than 100"],
    ["MEDIA__MAX_CHUNK_MB", "0x10", "a finite number above 0"],
    ["MEDIA__MAX_CHUNK_MB", "0", "a finite number above 0"],
    ["MEDIA__MAX_CHUNK_MB", "", "a finite number above 0"],
    ["MEDIA__DIRECT_UPLOAD_MB", "-1", "a finite number from 0 up"],
    ["MEDIA__FALLBACK_GLOBAL_UPLOADS", "0", "an integer from 1 up"],
    ["MEDIA__FALLBACK_GLOBAL_CHUNKS", "2.5", "an integer from 1 up"],
    ["MEDIA__FALLBACK_PER_USER_UPLOADS", "three", "an integer from 1 up"],
    ["MEDIA__FALLBACK_PER_USER_CHUNKS", "-5", "an integer from 1 up"],
  ])("%s=%s is refused by name and value", (name, text, expectation) => {
    expect(() => mediaConfigFromEnv({ [name]: text }, machine)).toThrow(
      new RangeError(`Expected \`${name}\` to be ${expectation}, got ${JSON.stringify(text)}`),
    );
  });

  test("does not hide the others: all are named at once", () => {
    const env = { MEDIA__MAX_CHUNK_MB: "big", SERVER_MEMORY_GB: "some", MEDIA__MEMORY_BASED_LIMITS: "maybe" };
    expect(() => mediaConfigFromEnv(env, machine)).toThrow(
      new RangeError(
        'Expected `SERVER_MEMORY_GB` to be a finite number from 0 up, got "some"; ' +
          'Expected `MEDIA__MEMORY_BASED_LIMITS` to be true or false, got "maybe"; ' +
          'Expected `MEDIA__MAX_CHUNK_MB` to be a finite number above 0, got "big"',
      ),
    );
  });

  test("is refused though another setting makes it idle", () => {
    const env = { MEDIA__MEMORY_BASED_LIMITS: "false", MEDIA__MEMORY_RESERVATION_PERCENT: "half" };
    expect(() => mediaConfigFromEnv(env, machine)).toThrow("`MEDIA__MEMORY_RESERVATION_PERCENT`");
  });

  test("zero percent reserved is fine", () => {
    expect(mediaConfigFromEnv({ MEDIA__MEMORY_RESERVATION_PERCENT: "0" }, machine).reservationPercent).toBe(0);
  });
});
