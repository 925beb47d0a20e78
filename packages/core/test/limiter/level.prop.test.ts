import * as fc from "fast-check";
import { charge, freeze, type Level, missingAt, newLevel, payableAt, refund } from "slotkeeper/parts";
import { expect, it } from "vitest";

const refills = fc.record({
  limit: fc.double({ min: 0.01, max: 1e6, noNaN: true }),
  perMs: fc.double({ min: 1, max: 3_600_000, noNaN: true }),
  burst: fc.double({ min: 0.01, max: 1e6, noNaN: true }),
});
/** Times as a store has them: a double resolves about 0.0002 ms there. */
const times = fc.double({ min: 1.7e12, max: 1.8e12, noNaN: true });

it("LEVEL3: at the time that `payableAt` names, the cost is payable", () => {
  fc.assert(
    fc.property(refills, times, fc.double({ min: 0, max: 1, noNaN: true }), (refill, now, part) => {
      const level = newLevel();
      charge(level, refill, refill.burst, now);
      const at = payableAt(level, refill, refill.burst * part, now);
      if (at > 0) expect(payableAt(level, refill, refill.burst * part, at)).toBe(0);
    }),
    { numRuns: 2_000 },
  );
});

it("LEVEL3: the time does not depend on when it is asked for", () => {
  const parts = fc.double({ min: 0, max: 1, noNaN: true });
  fc.assert(
    fc.property(refills, times, parts, parts, (refill, now, part, elapsed) => {
      const level = newLevel();
      charge(level, refill, refill.burst, now);
      const cost = refill.burst * part;
      const at = payableAt(level, refill, cost, now);
      if (at === 0) return;
      const between = now + (at - now) * elapsed;
      expect(payableAt(level, refill, cost, between)).toBe(between >= at ? 0 : at);
    }),
    { numRuns: 2_000 },
  );
});

it("a cost above the burst is never payable", () => {
  expect(payableAt(newLevel(), { limit: 10, perMs: 1_000, burst: 10 }, 11, 5_000)).toBe(Number.POSITIVE_INFINITY);
});

it("LEVEL4: a clock that is set back gives no units", () => {
  const refill = { limit: 10, perMs: 1_000, burst: 10 };
  const level = newLevel();
  charge(level, refill, 10, 5_000);
  expect(missingAt(level, refill, 4_000)).toBeGreaterThanOrEqual(10);
  charge(level, refill, 1, 4_000);
  expect(missingAt(level, refill, 5_000)).toBeCloseTo(11);
});

it("a level survives JSON, with its refunds", () => {
  const refill = { limit: 10, perMs: 1_000, burst: 10 };
  const stored = (level: Level) => JSON.parse(JSON.stringify(level)) as Level;
  const level = newLevel();
  for (const at of [1_000, 1_200, 1_300]) charge(level, refill, 3, at);
  const other = stored(level);
  for (const one of [level, other]) {
    refund(one, refill, 3, 1_200, 1_400);
    freeze(one, { ...refill, limit: 20 }, 1_450);
  }
  expect(stored(level)).toEqual(stored(other));
  expect(missingAt(other, refill, 1_450)).toBeGreaterThan(0);
});
