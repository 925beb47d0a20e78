import { type MediaConfig, mediaConfigFromEnv, memoryLimits } from "slotkeeper/transfers";
import { describe, expect, test } from "vitest";

describe("the worked examples come out exactly", () => {
  test.each([
    { gb: "2.0", percent: "50", uploads: 6, chunks: 12, perUserUploads: 2, perUserChunks: 3, usableGb: 1 },
    { gb: "8.0", percent: "40", uploads: 30, chunks: 60, perUserUploads: 3, perUserChunks: 6, usableGb: 4.8 },
    { gb: "16.0", percent: "30", uploads: 50, chunks: 100, perUserUploads: 5, perUserChunks: 10, usableGb: 11.2 },
  ])("$gb GB with $percent % reserved: $uploads uploads, $chunks chunks", (example) => {
    const config = mediaConfigFromEnv({
      MEDIA__SERVER_MEMORY_GB: example.gb,
      MEDIA__MEMORY_RESERVATION_PERCENT: example.percent,
    });
    expect(memoryLimits(config)).toEqual({
      globalUploads: example.uploads,
      globalChunks: example.chunks,
      perUserUploads: example.perUserUploads,
      perUserChunks: example.perUserChunks,
      availableGb: Number(example.gb),
      usableGb: example.usableGb,
      memoryBased: true,
    });
  });
});

describe("the limits", () => {
  test("are at least 2 and 4, however little memory there is", () => {
    expect(memoryLimits({ availableGb: 0.001, reservationPercent: 99 })).toMatchObject({
      globalUploads: 2,
      globalChunks: 4,
      perUserUploads: 2,
      perUserChunks: 3,
    });
  });

  test("are at most 50 and 100, however much there is", () => {
    expect(memoryLimits({ availableGb: 1e6 })).toMatchObject({
      globalUploads: 50,
      globalChunks: 100,
      perUserUploads: 5,
      perUserChunks: 10,
    });
  });

  test.each([
    { maxChunkMb: 1, uploads: 30 },
    { maxChunkMb: 10, uploads: 30 },
    { maxChunkMb: 11, uploads: 29 },
    { maxChunkMb: 30, uploads: 15 },
  ])("count an operation as the chunk and 10 MB, but 20 MB at least: $maxChunkMb MB", ({ maxChunkMb, uploads }) => {
    expect(memoryLimits({ availableGb: 8, maxChunkMb }).globalUploads).toBe(uploads);
  });

  test("count a direct upload as one operation, as large as it is if that is more than a chunk", () => {
    const small = memoryLimits({ availableGb: 8, directUploadMb: 6 });
    expect(small).toEqual(memoryLimits({ availableGb: 8 }));
    expect(memoryLimits({ availableGb: 8, directUploadMb: 30 })).toEqual(
      memoryLimits({ availableGb: 8, maxChunkMb: 30 }),
    );
    expect(memoryLimits({ availableGb: 8, directUploadMb: 5, maxChunkMb: 30 }).globalUploads).toBe(15);
  });

  test("are the fallbacks if they are not to follow from the memory", () => {
    const limits = { globalUploads: 10, globalChunks: 20, perUserUploads: 3, perUserChunks: 5, memoryBased: false };
    expect(memoryLimits({ memoryBased: false })).toEqual({ ...limits, availableGb: 0, usableGb: 0 });
    expect(memoryLimits({ memoryBased: false, availableGb: 8 })).toEqual({ ...limits, availableGb: 8, usableGb: 4.8 });
  });

  test("give no user more than there is in all, fallbacks included", () => {
    const config = { memoryBased: false, fallbackGlobalUploads: 2, fallbackPerUserUploads: 9, fallbackGlobalChunks: 1 };
    expect(memoryLimits(config)).toMatchObject({ perUserUploads: 2, perUserChunks: 1 });
  });
});

describe("a config that is wrong", () => {
  test("is refused, with everything that is wrong in one error", () => {
    const config = { availableGb: "8", reservationPercent: 100, maxChunkMb: 0, fallbackGlobalUploads: 0, reserve: 4 };
    expect(() => memoryLimits(config as unknown as MediaConfig)).toThrow(
      new TypeError(
        'Expected `availableGb` to be a finite number above 0, got "8"; ' +
          "Expected `reservationPercent` to be a number from 0 to less than 100, got 100; " +
          "Expected `maxChunkMb` to be a finite number above 0, got 0; " +
          "Expected `fallbackGlobalUploads` to be an integer from 1 up, got 0; " +
          "Unknown option `reserve` (known: reservationPercent, fallbackPerUserUploads, " +
          "fallbackPerUserChunks, memoryBased, directUploadMb, traces, availableGb, maxChunkMb, " +
          "fallbackGlobalUploads, fallbackGlobalChunks)",
      ),
    );
  });

  test.each([0, -1, Number.NaN, Infinity])("%d GB is a RangeError", (availableGb) => {
    expect(() => memoryLimits({ availableGb })).toThrow(RangeError);
  });

  test("that leaves the memory out is refused, since this is pure: nothing is detected here", () => {
    expect(() => memoryLimits({})).toThrow("Expected `availableGb` to be given, since the limits are memory-based");
  });
});
