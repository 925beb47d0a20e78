import { demandOf, type FairQueueConfig, widthOf } from "@slotkeeper/protocol";
import { type HostPolicy, resolveHost, resolveOptions } from "@slotkeeper/queue";
import {
  Book,
  type DecideContext,
  decide,
  type Input,
  type Rank,
  type RankedLine,
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

function withIndex(ranks: readonly Omit<Rank, "headAt" | "headKey" | "weighted" | "charged">[]): RankedLine[] {
  const none = { headKey: "", weighted: undefined, charged: 0, orderIndex: -1, rateGroup: undefined, turnIndex: -1 };
  return ranks.map((rank, headAt) => ({ ...rank, headAt, ...none, ofClass: { name: "default" } }));
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
        const [a, b, c] = withIndex(ranks) as [RankedLine, RankedLine, RankedLine];
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
          const [a, b] = withIndex(ranks.map((rank) => ({ ...rank, weight: 1 }))) as [RankedLine, RankedLine];
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
          const { used: gaps } = backlogged(slots, buckets);
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
          const { used: gaps } = backlogged(slots, buckets);
          const longest = Math.max(...buckets.flatMap(({ holds }) => holds));
          const lightest = Math.min(...buckets.map(({ weight }) => weight));
          expect(gaps).toBeLessThanOrEqual((2 * longest) / lightest + 1e-6);
        },
      ),
      { numRuns: 30 },
    );
  });
});

describe("the bound with budgets", () => {
  const amounts = fc.array(fc.integer({ min: 0, max: 20 }), { minLength: 1, maxLength: 4 });
  const payingBucket = fc.record({
    weight: fc.constantFrom(1, 1, 1, 2, 3),
    holds: fc.array(fc.integer({ min: 10, max: 400 }), { minLength: 1, maxLength: 5 }),
    widths: fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 3 }),
    costs: amounts,
    used: fc.option(amounts, { nil: undefined }),
  });
  const host = fc.record({
    slots: fc.integer({ min: 3, max: 8 }),
    buckets: fc.array(payingBucket, { minLength: 2, maxLength: 5 }),
    tokens: fc.record({
      limit: fc.constantFrom(50, 200, 2_000),
      perSeconds: fc.constantFrom(0.5, 1),
      burst: fc.constantFrom(20, 60),
      default: fc.constantFrom(0, 1, 7),
    }),
  });

  test("CORDER1: by a budget, charges per weight stay within (C + E)·(1/w + 1/w)", () => {
    fc.assert(
      fc.property(host, ({ slots, buckets, tokens }) => {
        const { charges } = backlogged(slots, buckets, { order: "budget:tokens", budgets: { tokens } });
        for (const { difference, most } of charges) expect(difference).toBeLessThanOrEqual(most + 1e-6);
      }),
      { numRuns: 80 },
    );
  });

  test("by slot time, use stays within 2·W·H·(1/w + 1/w) and W·B/w, the time in which a budget holds the first back", () => {
    fc.assert(
      fc.property(host, ({ slots, buckets, tokens }) => {
        const { used, heldBackMs } = backlogged(slots, buckets, { budgets: { tokens } });
        const longest = Math.max(...buckets.flatMap(({ holds }) => holds));
        const widest = Math.max(...buckets.flatMap(({ widths }) => widths));
        const lightest = Math.min(...buckets.map(({ weight }) => weight));
        expect(used).toBeLessThanOrEqual((widest * (4 * longest + heldBackMs)) / lightest + 1e-6);
      }),
      { numRuns: 60 },
    );
  });

  test("while no other ranks better, a first waits no longer than the holds and the refill from the largest debt", () => {
    fc.assert(
      fc.property(
        host,
        fc.constantFrom("slot-seconds", "budget:tokens", "fifo"),
        ({ slots, buckets, tokens }, order) => {
          const { longestFirstMs } = backlogged(slots, buckets, { order, budgets: { tokens } });
          const longest = Math.max(...buckets.flatMap(({ holds }) => holds));
          const refillMs = ((tokens.burst + tokens.limit) * tokens.perSeconds * 1000) / tokens.limit;
          expect(longestFirstMs).toBeLessThanOrEqual(longest + refillMs + 2 * STEP_MS);
        },
      ),
      { numRuns: 60 },
    );
  });
});

test("a clock that is set back grants nothing extra, and neither does a step ahead of it", () => {
  const { policy } = resolveHost(
    resolveOptions({ maxSlotPerIp: -1, budgets: { tokens: { limit: 10, perSeconds: 1 } } }),
    undefined,
  );
  const book = new Book("h", 0);
  let ids = 0;
  const grantsAt = (now: number): number => {
    const session = `s${ids++}`;
    const joining = { session, bucket: "b", weight: 1, arrivedAt: now, deadlineAt: 1e9, openMs: 1 };
    const demand = demandOf({ cost: { tokens: 10 } });
    const arrival: Input = { kind: "arrive", limit: undefined, demand, ...joining };
    decide(
      book,
      [arrival],
      contextOf(policy, now, () => `t${ids++}`),
    );
    return book.size("lease");
  };
  expect([100_000, 90_000, 95_000, 100_999].map(grantsAt)).toEqual([1, 1, 1, 1]);
  expect([101_000, 60_000, 101_999, 102_000].map(grantsAt)).toEqual([2, 2, 2, 3]);
});

interface Backlogged {
  readonly weight: number;
  readonly holds: readonly number[];
  readonly widths: readonly number[];
  /** What the requests of the bucket cost of the budget `tokens`, and what they really use. */
  readonly costs?: readonly number[];
  readonly used?: readonly number[] | undefined;
}

interface Running {
  readonly at: number;
  readonly bucket: number;
  readonly token: string;
  readonly width: number;
  readonly used: number | undefined;
  /** By how much its settlement will change the charge of the bucket. */
  readonly correction: number;
}

interface Watched {
  /** The largest difference of use per weight between any two buckets. */
  readonly used: number;
  /** For each pair of buckets: the largest difference of charges per weight, and the bound. */
  readonly charges: readonly { readonly difference: number; readonly most: number }[];
  /** How long a session was first at most. */
  readonly longestFirstMs: number;
  /** How long a first that enough slots were free for waited for a budget, in all. */
  readonly heldBackMs: number;
}

/** How often the host decides while a session waits for a budget. */
const STEP_MS = 10;

/** Keeps every bucket backlogged for a while. */
function backlogged(slots: number, buckets: readonly Backlogged[], more: FairQueueConfig = {}): Watched {
  const { policy } = resolveHost(
    resolveOptions({ maxSlotPerHost: slots, maxSlotPerIp: 0, maxWaitersPerHost: 0, ...more }),
    undefined,
  );
  const book = new Book("h", 0);
  let ids = 0;
  const ends: Running[] = [];
  const charges = new Charges(buckets);
  const used = buckets.map(() => 0);
  const held = buckets.map(() => 0);
  const grants = buckets.map(() => 0);
  const known = new Set<string>();
  const nth = <T>(list: readonly T[] | undefined, at: number) => list?.[at % list.length];
  const step = (now: number, inputs: Input[]) => {
    decide(
      book,
      inputs,
      contextOf(policy, now, () => `t${ids++}`),
    );
    for (const { key, bucket: name, width, charge } of book.all("lease")) {
      if (known.has(key)) continue;
      known.add(key);
      const bucket = Number(name.slice(1));
      const { holds, used: uses } = buckets[bucket] as Backlogged;
      const nthGrant = grants[bucket] as number;
      const units = charges.granted(bucket, charge?.costs["tokens"] ?? 0);
      const realUse = charge === undefined ? undefined : nth(uses, nthGrant);
      const correction = realUse === undefined ? 0 : Math.max(1, realUse) - units;
      ends.push({ at: now + (nth(holds, nthGrant) as number), bucket, token: key, width, used: realUse, correction });
      grants[bucket] = nthGrant + 1;
      held[bucket] = (held[bucket] as number) + width;
    }
    charges.watch(ends);
  };
  const arrival = (bucket: number, now: number): Input => {
    const { weight, widths, costs } = buckets[bucket] as Backlogged;
    const tokens = more.budgets === undefined ? undefined : nth(costs, ids);
    return {
      kind: "arrive",
      session: `s${ids++}`,
      bucket: `b${bucket}`,
      weight,
      demand: demandOf({ width: nth(widths, ids), cost: tokens === undefined ? undefined : { tokens } }),
      arrivedAt: now + ids / 1e6,
      deadlineAt: 1e9,
      openMs: 1,
      limit: undefined,
    };
  };
  step(
    0,
    buckets.flatMap((_, bucket) => Array.from({ length: slots + 1 }, () => arrival(bucket, 0))),
  );
  let [worst, longestFirstMs, heldBackMs] = [0, 0, 0];
  let first = { session: book.head.first, since: 0, grants: known.size };
  for (let now = 0; now < 20_000; ) {
    ends.sort((a, b) => a.at - b.at);
    const [next] = ends;
    const isPaused = book.head.first !== undefined || next === undefined;
    const at = Math.min(next?.at ?? Number.POSITIVE_INFINITY, isPaused ? now + STEP_MS : Number.POSITIVE_INFINITY);
    if (lacksUnits(book)) heldBackMs += at - now;
    held.forEach((count, index) => {
      used[index] = (used[index] as number) + count * (at - now);
    });
    now = at;
    const perWeight = used.map((ms, index) => ms / (buckets[index]?.weight ?? 1));
    worst = Math.max(worst, Math.max(...perWeight) - Math.min(...perWeight));
    if (next?.at === now) {
      ends.shift();
      const { bucket, token: slotToken, width, used: tokens, correction } = next;
      held[bucket] = (held[bucket] as number) - width;
      charges.settled(bucket, correction);
      const settled = tokens === undefined ? undefined : { tokens };
      step(now, [
        { kind: "release", slotToken, hitAt: undefined, status: undefined, used: settled },
        arrival(bucket, now),
      ]);
    } else step(now, []);
    // If another waiter was granted, it ranked better, and the session is first again from now on.
    const isOther = book.head.first !== first.session || known.size > first.grants;
    if (isOther) first = { session: book.head.first, since: now, grants: known.size };
    if (first.session !== undefined) longestFirstMs = Math.max(longestFirstMs, now - first.since);
  }
  return { used: worst, charges: charges.pairs(), longestFirstMs, heldBackMs };
}

function lacksUnits(book: Book): boolean {
  const first = book.get("waiter", book.head.first ?? "");
  return first !== undefined && widthOf(first.demand) <= book.free;
}

/** What each bucket was charged, counted by hand. */
class Charges {
  readonly #buckets: readonly Backlogged[];
  readonly #charged: number[];
  readonly #worst = new Map<string, number>();
  #largest = 1;
  #corrections = 0;

  constructor(buckets: readonly Backlogged[]) {
    this.#buckets = buckets;
    this.#charged = buckets.map(() => 0);
  }

  granted(bucket: number, cost: number): number {
    const units = Math.max(1, cost);
    this.#largest = Math.max(this.#largest, units);
    this.#charged[bucket] = (this.#charged[bucket] as number) + units;
    return units;
  }

  settled(bucket: number, correction: number): void {
    this.#charged[bucket] = (this.#charged[bucket] as number) + correction;
  }

  watch(running: readonly Running[]): void {
    this.#buckets.forEach((_, bucket) => {
      const own = running.filter((one) => one.bucket === bucket);
      const sum = own.reduce((total, { correction }) => total + Math.abs(correction), 0);
      this.#corrections = Math.max(this.#corrections, sum);
    });
    const perWeight = this.#charged.map((units, bucket) => units / (this.#buckets[bucket]?.weight ?? 1));
    perWeight.forEach((a, i) =>
      perWeight.forEach((b, j) => this.#worst.set(`${i} ${j}`, Math.max(this.#worst.get(`${i} ${j}`) ?? 0, a - b))),
    );
  }

  pairs(): Watched["charges"] {
    return [...this.#worst].map(([pair, difference]) => {
      const [i, j] = pair.split(" ").map((at) => this.#buckets[Number(at)]?.weight ?? 1) as [number, number];
      return { difference, most: (this.#largest + this.#corrections) * (1 / i + 1 / j) };
    });
  }
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
