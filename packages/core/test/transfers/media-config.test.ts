import { MediaSlots, mediaConfigFromEnv, memoryLimits } from "slotkeeper/transfers";
import { describe, expect, test } from "vitest";
import { FakeMemory, GB } from "./fake-memory.ts";

const machine = new FakeMemory({ totalBytes: 8 * GB });

const every = {
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
    const { traces, ...settings } = mediaConfigFromEnv(every, machine);
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
    expect(new Set(Object.values(traces).map((trace) => trace?.source))).toEqual(new Set(Object.keys(every)));
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

/** Reads the environment and records the warnings. */
function read(environment: Record<string, string>) {
  const warnings: string[] = [];
  const config = mediaConfigFromEnv(environment, machine, { warn: (message) => warnings.push(message) });
  return { config, warnings };
}

describe("an empty variable", () => {
  test.each(Object.keys(every))("%s counts as not set", (name) => {
    const { config, warnings } = read({ [name]: "" });
    expect([config, warnings]).toEqual([mediaConfigFromEnv({}, machine), []]);
  });
});

describe("a malformed variable", () => {
  test.each([
    ["MEDIA__MEMORY_BASED_LIMITS", "yes", "true or false"],
    ["MEDIA__SERVER_MEMORY_GB", "-2", "a finite number from 0 up"],
    ["MEDIA__MEMORY_RESERVATION_PERCENT", "100", "a number from 0 to less than 100"],
    ["MEDIA__MEMORY_RESERVATION_PERCENT", "-1", "a number from 0 to less than 100"],
    ["MEDIA__MEMORY_RESERVATION_PERCENT", "40%", "a number from 0 to less than 100"],
    ["MEDIA__MAX_CHUNK_MB", "0x10", "a finite number above 0"],
    ["MEDIA__MAX_CHUNK_MB", "0", "a finite number above 0"],
    ["MEDIA__DIRECT_UPLOAD_MB", "-1", "a finite number from 0 up"],
    ["MEDIA__FALLBACK_GLOBAL_UPLOADS", "0", "an integer from 1 up"],
    ["MEDIA__FALLBACK_GLOBAL_CHUNKS", "2.5", "an integer from 1 up"],
    ["MEDIA__FALLBACK_PER_USER_UPLOADS", "three", "an integer from 1 up"],
    ["MEDIA__FALLBACK_PER_USER_CHUNKS", "-5", "an integer from 1 up"],
  ])("%s=%s leads to the static limits and a warning that names it and its value", (name, text, expectation) => {
    const { config, warnings } = read({ [name]: text });
    const limits = { globalUploads: 10, globalChunks: 20, perUserUploads: 3, perUserChunks: 5, memoryBased: false };
    expect(memoryLimits(config)).toMatchObject(limits);
    expect(config.traces.memoryBased).toEqual({ value: false, source: name });
    expect(warnings).toEqual([
      `The static limits apply, because of the environment: Expected \`${name}\` to be ${expectation}, got ${JSON.stringify(text)}`,
    ]);
  });

  test("does not hide the others: one warning names all of them, and the other variables apply", () => {
    const { config, warnings } = read({
      MEDIA__MAX_CHUNK_MB: "big",
      SERVER_MEMORY_GB: "some",
      MEDIA__MEMORY_BASED_LIMITS: "maybe",
      MEDIA__FALLBACK_GLOBAL_UPLOADS: "7",
    });
    expect([memoryLimits(config).globalUploads, warnings]).toEqual([
      7,
      [
        'The static limits apply, because of the environment: Expected `SERVER_MEMORY_GB` to be a finite number from 0 up, got "some"; ' +
          'Expected `MEDIA__MEMORY_BASED_LIMITS` to be true or false, got "maybe"; ' +
          'Expected `MEDIA__MAX_CHUNK_MB` to be a finite number above 0, got "big"',
      ],
    ]);
  });

  test("is warned of although another setting makes it idle", () => {
    const { warnings } = read({ MEDIA__MEMORY_BASED_LIMITS: "false", MEDIA__MEMORY_RESERVATION_PERCENT: "half" });
    expect(warnings).toHaveLength(1);
  });

  test("changes the limits of MediaSlots, which say why, and a logger that throws changes nothing", () => {
    const config = mediaConfigFromEnv({ MEDIA__MAX_CHUNK_MB: "big" }, machine, {
      warn: () => {
        throw new Error("ignored");
      },
    });
    const slots = new MediaSlots(config);
    const { limits, sources } = slots.config();
    expect([limits.globalUploads, sources.globalUploads, sources.memoryBased]).toEqual([
      10,
      "fallback",
      "MEDIA__MAX_CHUNK_MB",
    ]);
    slots.close();
  });

  test("zero percent reserved is fine", () => {
    expect(mediaConfigFromEnv({ MEDIA__MEMORY_RESERVATION_PERCENT: "0" }, machine).reservationPercent).toBe(0);
  });
});
