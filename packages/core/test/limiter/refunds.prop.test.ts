/**
 * Refunds to a bucket against a replay: the bucket must be as if the smaller cost had been charged in the first place (BUDGET1).
 * Amounts and times are integers, and one unit flows in each millisecond, so that nothing is rounded.
 */
import * as fc from "fast-check";
import { Limiter, type LimiterSlot } from "slotkeeper/limiter";
import { FakeClock } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { patience, runs } from "../long-mode.ts";

const BURST = 1_000;

class Life {
  readonly clock = new FakeClock(1_000_000);
  readonly limiter = new Limiter({
    budgets: { tokens: { limit: 1_000, perMs: 1_000, burst: BURST } },
    clock: this.clock,
  });
  readonly charges: { at: number; cost: number; slot: LimiterSlot }[] = [];

  charge(cost: number): void {
    const slot = this.limiter.tryAcquire({ cost: { tokens: cost } });
    if (slot) this.charges.push({ at: this.clock.now(), cost, slot });
  }

  settle(which: number, part: number): void {
    const charge = this.charges[which % Math.max(1, this.charges.length)];
    const cost = Math.floor((charge?.cost ?? 0) * part);
    if (charge?.slot.settle({ tokens: cost })) charge.cost = cost;
  }

  get available(): number {
    return this.limiter.stats().budgets.tokens?.available ?? Number.NaN;
  }

  /** What is available if every charge had its final cost from the start. */
  replayed(): number {
    let [missing, at] = [0, 0];
    for (const charge of [...this.charges, { at: this.clock.now(), cost: 0 }]) {
      missing = Math.max(0, missing - (charge.at - at)) + charge.cost;
      ({ at } = charge);
    }
    return BURST - missing;
  }

  end(): void {
    for (const { slot } of this.charges) slot.release();
    this.limiter.close();
  }
}

const step = fc.record({
  waitMs: fc.constantFrom(0, 1, 3, 20, 150),
  cost: fc.integer({ min: 0, max: 120 }),
  settles: fc.boolean(),
  which: fc.nat(1_000),
  part: fc.constantFrom(0, 0.25, 0.5, 0.9),
});
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

function live(steps: readonly Step[], check: (life: Life) => void): void {
  const life = new Life();
  for (const { waitMs, cost, settles, which, part } of steps) {
    life.clock.advance(waitMs);
    life.charge(cost);
    if (settles) life.settle(which, part);
    check(life);
  }
  life.end();
}

describe("refunds to a bucket", () => {
  test("leave it as if the smaller cost had been charged in the first place", patience, () => {
    const property = fc.property(fc.array(step, { maxLength: 60, size: "max" }), (steps) =>
      live(steps, (life) => expect(life.available).toBe(life.replayed())),
    );
    fc.assert(property, runs(300));
  });

  test("of an old charge give back nothing that the refund of a later one has already shown to overflow", () => {
    const life = new Life();
    life.charge(2);
    life.clock.advance(1);
    life.charge(151);
    life.clock.advance(150);
    life.charge(1);
    life.settle(1, 0);
    life.settle(0, 0);
    // With nothing charged but the last unit, the bucket misses one.
    expect([life.available, life.replayed()]).toEqual([BURST - 1, BURST - 1]);
    life.end();
  });

  /** Before each charge, one unit more is missing than before the last one, and less than the last one cost. So no refund is whole. */
  function rise(life: Life, charges: number): void {
    life.charge(10);
    for (let i = 0; i < charges; i++) {
      life.charge(200);
      life.clock.advance(199);
    }
    life.charge(1);
  }

  test("after more charges than are kept are one unit too small at most, and never too large (LOWEST1)", () => {
    for (const charges of [64, 70]) {
      const short = Array.from({ length: charges }, (_, at) => {
        const life = new Life();
        rise(life, charges);
        life.settle(at + 1, 0);
        life.end();
        return life.replayed() - life.available;
      });
      expect(new Set(short)).toEqual(new Set([0, 1]));
    }
  });

  test("never give back more than that, however many charges there are since it was full", patience, () => {
    const life = new Life();
    rise(life, 300);
    for (const start of [3, 0, 5])
      for (let which = start; which < life.charges.length; which += 7) {
        life.settle(which, 0);
        expect(life.available).toBeLessThanOrEqual(life.replayed());
      }
    life.end();
  });
});
