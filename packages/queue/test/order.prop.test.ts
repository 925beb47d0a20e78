import {
  BucketOrder,
  MemoryStore,
  type Rank,
  type Ranked,
  ranksBefore,
  resolveHost,
  resolveOptions,
  usedPerWeight,
} from "@slotkeeper/queue";
import { VirtualClock } from "@slotkeeper/testkit/simulator";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";

const ranked = fc.record({
  inFlight: fc.integer({ min: 0, max: 4 }),
  weight: fc.constantFrom(1, 1, 2, 3, 0.5),
  usedMs: fc.integer({ min: 0, max: 5_000 }),
  asOf: fc.integer({ min: 0, max: 100 }),
});

function withIndex(ranks: readonly Omit<Rank, "headAt">[]): Ranked[] {
  return ranks.map((rank, headAt) => ({ ...rank, headAt, orderIndex: -1, orderClass: undefined }));
}

describe("the index of the order", () => {
  test("finds whom comparing everybody finds, whatever was added and removed and however late", () => {
    fc.assert(
      fc.property(
        fc.array(ranked, { minLength: 1, maxLength: 30 }),
        fc.array(fc.nat(), { maxLength: 20 }),
        fc.double({ min: 0, max: 8, noNaN: true }),
        fc.integer({ min: 100, max: 10_000 }),
        (ranks, removals, level, now) => {
          const present = new Set(withIndex(ranks));
          const order = new BucketOrder<Ranked>();
          for (const one of present) order.add(one);
          for (const pick of removals) {
            const one = [...present][pick % Math.max(1, present.size)];
            if (one === undefined) continue;
            present.delete(one);
            order.remove(one);
          }
          const best = order.best(level, now);
          expect(order.size).toBe(present.size);
          for (const one of present)
            if (one !== best) expect(best !== undefined && ranksBefore(one, best, level, now)).toBe(false);
        },
      ),
    );
  });

  test("ranks strictly: nobody is before himself, and before is one-sided and carries on", () => {
    fc.assert(
      fc.property(
        fc.array(ranked, { minLength: 3, maxLength: 3 }),
        fc.double({ min: 0, max: 8, noNaN: true }),
        (ranks, level) => {
          const [a, b, c] = withIndex(ranks) as [Ranked, Ranked, Ranked];
          const before = (one: Rank, other: Rank) => ranksBefore(one, other, level, 200);
          expect(before(a, a)).toBe(false);
          expect(before(a, b) && before(b, a)).toBe(false);
          if (before(a, b) && before(b, c)) expect(before(a, c)).toBe(true);
        },
      ),
    );
  });

  test("with equal weights it is: fewest in flight, then least used, then oldest", () => {
    fc.assert(
      fc.property(
        fc.array(ranked, { minLength: 2, maxLength: 2 }),
        fc.double({ min: 0, max: 8, noNaN: true }),
        (ranks, level) => {
          const [a, b] = withIndex(ranks.map((rank) => ({ ...rank, weight: 1 }))) as [Ranked, Ranked];
          const byHand =
            a.inFlight !== b.inFlight
              ? a.inFlight < b.inFlight
              : usedPerWeight(a, 200) === usedPerWeight(b, 200)
                ? a.headAt < b.headAt
                : usedPerWeight(a, 200) < usedPerWeight(b, 200);
          expect(ranksBefore(a, b, level, 200)).toBe(byHand);
        },
      ),
    );
  });
});

describe("the bound (order I3)", () => {
  const bucketOf = fc.record({
    weight: fc.constantFrom(1, 1, 1, 2, 3),
    holds: fc.array(fc.integer({ min: 10, max: 400 }), { minLength: 1, maxLength: 5 }),
  });

  test("buckets that stay backlogged stay within H/w + H/w of each other, once all have been served", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 5 }),
        fc.array(bucketOf, { minLength: 2, maxLength: 5 }),
        async (slots, buckets) => {
          const gaps = await backlogged(slots, buckets);
          const longest = Math.max(...buckets.flatMap(({ holds }) => holds));
          const lightest = Math.min(...buckets.map(({ weight }) => weight));
          expect(gaps).toBeLessThanOrEqual((2 * longest) / lightest + 1e-6);
        },
      ),
      { numRuns: 30 },
    );
  });
});

/** Keeps every bucket backlogged on a real store for a while; the largest gap of use per weight between any two. */
async function backlogged(
  slots: number,
  buckets: readonly { weight: number; holds: readonly number[] }[],
): Promise<number> {
  const clock = new VirtualClock();
  let ids = 0;
  const store = new MemoryStore({ clock, newToken: () => `t${ids++}` });
  const policy = {
    ...resolveHost(resolveOptions({ maxSlotPerHost: slots, maxSlotPerIp: 0, maxWaitersPerHost: 0 }), undefined).policy,
  };
  const grants = buckets.map(() => 0);
  const used = () => buckets.map(({ weight }, index) => (usedBy[index] as number) / weight);
  const usedBy = buckets.map(() => 0);
  const held = buckets.map(() => 0);
  let asOf = clock.now();
  const accrue = () => {
    held.forEach((count, index) => {
      usedBy[index] = (usedBy[index] as number) + count * (clock.now() - asOf);
    });
    asOf = clock.now();
  };
  const serve = async (): Promise<void> => {
    const waiters = buckets.flatMap(({ weight }, index) =>
      Array.from({ length: slots + 1 }, (_, nth) => ({
        session: `s${index}-${(grants[index] as number) + nth}`,
        bucket: `b${index}`,
        weight,
        arrivedAt: clock.now() + index / 1000 + nth / 100,
        ttlMs: 1e9,
        openMs: 1,
        isGrantable: true,
      })),
    );
    const { verdicts } = await store.tryAcquire({ host: "h", instance: "i", policy, isSemaphore: false, waiters });
    verdicts.forEach((verdict, at) => {
      if (verdict.status !== "ACQUIRED") return;
      const index = Math.floor(at / (slots + 1));
      const { holds } = buckets[index] as { holds: readonly number[] };
      const holdMs = holds[(grants[index] as number) % holds.length] as number;
      grants[index] = (grants[index] as number) + 1;
      accrue();
      held[index] = (held[index] as number) + 1;
      clock.setTimer(() => void end(index, verdict.slot.slotToken), holdMs);
    });
  };
  const end = async (index: number, slotToken: string): Promise<void> => {
    accrue();
    held[index] = (held[index] as number) - 1;
    await store.release({
      slotToken,
      host: "h",
      policy,
      hitAgoMs: undefined,
      status: undefined,
      uncollectedBy: undefined,
    });
    await serve();
  };
  await serve();
  let worst = 0;
  await clock.run(20_000, () => {
    accrue();
    worst = Math.max(worst, Math.max(...used()) - Math.min(...used()));
  });
  return worst;
}
