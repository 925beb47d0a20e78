import { demandOf } from "@slotkeeper/protocol";
import { type HostPolicy, resolveHost, resolveOptions } from "@slotkeeper/queue";
import {
  Book,
  type DecideContext,
  decide,
  type Input,
  type Line,
  type Rank,
  ranksBefore,
  SlotSeconds,
  usedPerWeight,
} from "@slotkeeper/queue/internals";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";

const ranked = fc.record({
  inFlight: fc.integer({ min: 0, max: 4 }),
  weight: fc.constantFrom(1, 1, 2, 3, 0.5),
  usedMs: fc.integer({ min: 0, max: 5_000 }),
  asOf: fc.integer({ min: 0, max: 100 }),
  headWidth: fc.constantFrom(1, 1, 2, 4),
});
const shares = fc.record({ level: fc.double({ min: 0, max: 8, noNaN: true }), widest: fc.constantFrom(1, 1, 2, 4) });

function withIndex(ranks: readonly Omit<Rank, "headAt" | "headKey" | "weighted">[]): Line[] {
  const none = { headKey: "", weighted: undefined, orderIndex: -1, orderClass: undefined, turnIndex: -1 };
  return ranks.map((rank, headAt) => ({ ...rank, headAt, ...none }));
}

describe("the index of the order", () => {
  test("finds the same bucket as a comparison of all, after any additions and removals and at any time", () => {
    fc.assert(
      fc.property(
        fc.array(ranked, { minLength: 1, maxLength: 30 }),
        fc.array(fc.nat(), { maxLength: 20 }),
        shares,
        fc.integer({ min: 100, max: 10_000 }),
        (ranks, removals, share, now) => {
          const present = new Set(withIndex(ranks));
          const order = new SlotSeconds();
          for (const one of present) order.push(one);
          for (const pick of removals) {
            const one = [...present][pick % Math.max(1, present.size)];
            if (one === undefined) continue;
            present.delete(one);
            order.remove(one);
          }
          const best = order.best(share, now);
          expect(order.size).toBe(present.size);
          for (const one of present)
            if (one !== best) expect(best !== undefined && ranksBefore(one, best, share, now)).toBe(false);
        },
      ),
    );
  });

  test("is a strict order: irreflexive, asymmetric and transitive", () => {
    fc.assert(
      fc.property(fc.array(ranked, { minLength: 3, maxLength: 3 }), shares, (ranks, share) => {
        const [a, b, c] = withIndex(ranks) as [Line, Line, Line];
        const before = (one: Rank, other: Rank) => ranksBefore(one, other, share, 200);
        expect(before(a, a)).toBe(false);
        expect(before(a, b) && before(b, a)).toBe(false);
        if (before(a, b) && before(b, c)) expect(before(a, c)).toBe(true);
      }),
    );
  });

  test("with equal weights: fewest slots first, then least used, then oldest", () => {
    fc.assert(
      fc.property(
        fc.array(ranked, { minLength: 2, maxLength: 2 }),
        shares.map(({ level }) => ({ level, widest: 1 })),
        (ranks, share) => {
          const [a, b] = withIndex(ranks.map((rank) => ({ ...rank, weight: 1 }))) as [Line, Line];
          const byHand =
            a.inFlight !== b.inFlight
              ? a.inFlight < b.inFlight
              : usedPerWeight(a, 200) === usedPerWeight(b, 200)
                ? a.headAt < b.headAt
                : usedPerWeight(a, 200) < usedPerWeight(b, 200);
          expect(ranksBefore(a, b, share, 200)).toBe(byHand);
        },
      ),
    );
  });
});

describe("the bound (order ORDER3)", () => {
  const bucketOf = fc.record({
    weight: fc.constantFrom(1, 1, 1, 2, 3),
    holds: fc.array(fc.integer({ min: 10, max: 400 }), { minLength: 1, maxLength: 5 }),
    widths: fc.constant([1]),
  });
  const wideBucketOf = fc.record({
    weight: fc.constantFrom(1, 1, 1, 2, 3),
    holds: fc.array(fc.integer({ min: 10, max: 400 }), { minLength: 1, maxLength: 5 }),
    widths: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 4 }),
  });

  test("with requests for up to W slots, they stay within 2·W·H·(1/w + 1/w)", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 4, max: 8 }),
        fc.array(wideBucketOf, { minLength: 2, maxLength: 5 }),
        (slots, buckets) => {
          const gaps = backlogged(slots, buckets);
          const longest = Math.max(...buckets.flatMap(({ holds }) => holds));
          const widest = Math.max(...buckets.flatMap(({ widths }) => widths));
          const lightest = Math.min(...buckets.map(({ weight }) => weight));
          expect(gaps).toBeLessThanOrEqual((4 * widest * longest) / lightest + 1e-6);
        },
      ),
      { numRuns: 60 },
    );
  });

  test("buckets that stay backlogged stay within H/w + H/w of each other, once all have been served", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 5 }),
        fc.array(bucketOf, { minLength: 2, maxLength: 5 }),
        (slots, buckets) => {
          const gaps = backlogged(slots, buckets);
          const longest = Math.max(...buckets.flatMap(({ holds }) => holds));
          const lightest = Math.min(...buckets.map(({ weight }) => weight));
          expect(gaps).toBeLessThanOrEqual((2 * longest) / lightest + 1e-6);
        },
      ),
      { numRuns: 30 },
    );
  });
});

interface Backlogged {
  readonly weight: number;
  readonly holds: readonly number[];
  readonly widths: readonly number[];
}

/** Keeps every bucket backlogged for a while. Returns the largest difference of use per weight between any two. */
function backlogged(slots: number, buckets: readonly Backlogged[]): number {
  const { policy } = resolveHost(
    resolveOptions({ maxSlotPerHost: slots, maxSlotPerIp: 0, maxWaitersPerHost: 0 }),
    undefined,
  );
  const book = new Book("h", 0);
  let ids = 0;
  const used = buckets.map(() => 0);
  const held = buckets.map(() => 0);
  const grants = buckets.map(() => 0);
  const ends: { at: number; bucket: number; token: string; width: number }[] = [];
  const known = new Set<string>();
  const step = (now: number, inputs: Input[]) => {
    decide(
      book,
      inputs,
      contextOf(policy, now, () => `t${ids++}`),
    );
    for (const { key, bucket: name, width } of book.all("lease")) {
      if (known.has(key)) continue;
      known.add(key);
      const bucket = Number(name.slice(1));
      const { holds } = buckets[bucket] as Backlogged;
      ends.push({ at: now + (holds[(grants[bucket] as number) % holds.length] as number), bucket, token: key, width });
      grants[bucket] = (grants[bucket] as number) + 1;
      held[bucket] = (held[bucket] as number) + width;
    }
  };
  const arrival = (bucket: number, now: number): Input => ({
    kind: "arrive",
    session: `s${ids++}`,
    bucket: `b${bucket}`,
    weight: buckets[bucket]?.weight ?? 1,
    demand: demandOf({ width: buckets[bucket]?.widths[ids % (buckets[bucket]?.widths.length ?? 1)] }),
    arrivedAt: now + ids / 1e6,
    deadlineAt: 1e9,
    openMs: 1,
    limit: undefined,
  });
  step(
    0,
    buckets.flatMap((_, bucket) => Array.from({ length: slots + 1 }, () => arrival(bucket, 0))),
  );
  let worst = 0;
  for (let now = 0; now < 20_000; ) {
    ends.sort((a, b) => a.at - b.at);
    const { at, bucket, token, width } = ends.shift() as (typeof ends)[number];
    held.forEach((count, index) => {
      used[index] = (used[index] as number) + count * (at - now);
    });
    now = at;
    const perWeight = used.map((ms, index) => ms / (buckets[index]?.weight ?? 1));
    worst = Math.max(worst, Math.max(...perWeight) - Math.min(...perWeight));
    held[bucket] = (held[bucket] as number) - width;
    step(now, [{ kind: "release", slotToken: token, hitAt: undefined, status: undefined }, arrival(bucket, now)]);
  }
  return worst;
}

function contextOf(policy: HostPolicy, now: number, newSecret: () => string): DecideContext {
  const { collectMs, cancelMs, pollIntervalMs, idleMs, scheduler } = resolveOptions();
  return {
    now,
    instance: "i",
    limits: { policy, loadedAt: 0, hostname: undefined },
    isSemaphore: false,
    collectMs,
    cancelMs,
    pollIntervalMs,
    idleMs,
    mostEnds: 3,
    scheduler,
    newSecret,
    isPolledHere: () => true,
    awayHere: () => undefined,
    isTokenSent: () => false,
    isUndelivered: () => false,
    seenAt: () => undefined,
  };
}
