import * as fc from "fast-check";
import { type MediaLimits, memoryLimits } from "slotkeeper/transfers";
import { expect, test } from "vitest";
import { patience, runs } from "../long-mode.ts";

const SLOTS = ["globalUploads", "globalChunks", "perUserUploads", "perUserChunks"] as const;

function expectNoMoreSlots(less: MediaLimits, more: MediaLimits): void {
  expect(SLOTS.filter((name) => less[name] > more[name])).toEqual([]);
}

/** From a hundredth of a GB to more than the caps need, dense where the limits move. */
const gb = fc.oneof(
  fc.double({ min: 0.01, max: 40, noNaN: true }),
  fc.double({ min: 0.01, max: 1e6, noNaN: true }),
  fc.integer({ min: 1, max: 40 * 1024 }).map((mb) => mb / 1024),
);
const percent = fc.oneof(fc.integer({ min: 0, max: 99 }), fc.double({ min: 0, max: 99.999, noNaN: true }));
const mb = fc.oneof(fc.integer({ min: 1, max: 500 }), fc.double({ min: 0.1, max: 5000, noNaN: true }));
const setting = fc.record({ availableGb: gb, reservationPercent: percent, maxChunkMb: mb, directUploadMb: mb });

test("MEDIALIMIT1: less memory never gives more slots, over the whole range", patience, () => {
  const property = fc.property(setting, gb, (config, otherGb) => {
    const [less, more] = [config.availableGb, otherGb].sort((a, b) => a - b) as [number, number];
    expectNoMoreSlots(memoryLimits({ ...config, availableGb: less }), memoryLimits({ ...config, availableGb: more }));
  });
  fc.assert(property, runs(2000));
});

test("MEDIALIMIT1: nor in small steps, from the least limits up to the most", () => {
  let before = memoryLimits({ availableGb: 0.01 });
  for (let step = 1; step <= 15_000; step++) {
    const now = memoryLimits({ availableGb: 0.01 + step / 850 });
    expectNoMoreSlots(before, now);
    before = now;
  }
  expect(before.globalUploads).toBe(50);
});

test("MEDIALIMIT1: a larger reservation, chunk or direct upload never gives more slots", patience, () => {
  const property = fc.property(setting, percent, mb, mb, (config, reserve, chunkMb, directMb) => {
    const more = memoryLimits(config);
    expectNoMoreSlots(
      memoryLimits({ ...config, reservationPercent: Math.max(reserve, config.reservationPercent) }),
      more,
    );
    expectNoMoreSlots(memoryLimits({ ...config, maxChunkMb: Math.max(chunkMb, config.maxChunkMb) }), more);
    expectNoMoreSlots(memoryLimits({ ...config, directUploadMb: Math.max(directMb, config.directUploadMb) }), more);
  });
  fc.assert(property, runs(1000));
});

test(
  "MEDIALIMIT2: limits are whole numbers within their bounds, and no user has more than there are in all",
  patience,
  () => {
    const property = fc.property(setting, (config) => {
      const limits = memoryLimits(config);
      for (const name of SLOTS) expect(Number.isInteger(limits[name])).toBe(true);
      expect(limits.globalUploads).toBeGreaterThanOrEqual(2);
      expect(limits.globalUploads).toBeLessThanOrEqual(50);
      expect(limits.globalChunks).toBeGreaterThanOrEqual(4);
      expect(limits.globalChunks).toBeLessThanOrEqual(100);
      expect(limits.perUserUploads).toBeGreaterThanOrEqual(2);
      expect(limits.perUserUploads).toBeLessThanOrEqual(limits.globalUploads);
      expect(limits.perUserChunks).toBeGreaterThanOrEqual(3);
      expect(limits.perUserChunks).toBeLessThanOrEqual(limits.globalChunks);
    });
    fc.assert(property, runs(1000));
  },
);
