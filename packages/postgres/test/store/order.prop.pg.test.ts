import { type HostPolicy, resolveHost, resolveOptions } from "@slotkeeper/queue";
import * as fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { START, type Step, TwoStores } from "./two-stores.ts";
import { VirtualDatabase } from "./virtual-database.ts";

let database: VirtualDatabase;
let hosts = 0;
let now = START;

beforeAll(async () => {
  database = await VirtualDatabase.open(now);
});
afterAll(() => database.close());

const base = resolveHost(resolveOptions(), undefined).policy;
const none = Number.POSITIVE_INFINITY;
const oneOf = <T>(...values: T[]) => fc.constantFrom(...values);

const policies: fc.Arbitrary<HostPolicy> = fc
  .record({
    slots: fc.integer({ min: 1, max: 4 }),
    slotsPerBucket: oneOf(none, none, 1, 2),
    waiters: oneOf(none, none, 3, 5),
    waitersPerBucket: oneOf(none, none, 2),
    leaseMs: oneOf(400, 1_500, 30_000),
    maxHoldMs: oneOf(2_000, 3_600_000),
    cooldownMs: oneOf(0, 0, 250),
    minHoldMs: oneOf(0, 0, 120),
    smoothMs: oneOf(0, 0, 100 / 3),
    order: oneOf("slot-seconds" as const, "slot-seconds" as const, "fifo" as const, "given" as const),
  })
  .map((limits) => ({ ...base, ...limits, breaker: { ...base.breaker, windowMs: 900, openMs: 300 } }));

const instance = oneOf("one", "two");
const session = fc.integer({ min: 1, max: 14 });
const sessions = fc.uniqueArray(
  fc.record({ session, weight: oneOf(1, 1, 1, 3, 0.3), isGrantable: oneOf(true, true, true, false) }),
  { minLength: 1, maxLength: 8, selector: (spec) => spec.session },
);

const steps: fc.Arbitrary<Step> = fc.oneof(
  { weight: 15, arbitrary: fc.record({ kind: fc.constant("try" as const), sessions, instance }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("register" as const), sessions, instance }) },
  { weight: 12, arbitrary: fc.record({ kind: fc.constant("pass" as const), ms: fc.integer({ min: 0, max: 400 }) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("pass" as const), ms: oneOf(0.1, 17.7, 5_200) }) },
  {
    weight: 15,
    arbitrary: fc.record({
      kind: fc.constant("release" as const),
      session,
      hitAgoMs: oneOf(undefined, 0, 40),
      status: oneOf(undefined, undefined, 200, 503),
      uncollectedBy: oneOf(undefined, undefined, undefined, "one"),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("renew" as const), session }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("withdraw" as const),
      session,
      end: oneOf("canceled" as const, "timeout" as const),
      instance,
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("report" as const), status: oneOf(200, 404, 503, 503) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("limits" as const), slots: oneOf(undefined, 1, 3) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("breaker" as const), isOpen: fc.boolean() }) },
);

const isLong = process.env["SLOTKEEPER_LONG"] === "1";

test("the same history gives the same answers in memory and in PostgreSQL, to the last bit", {
  timeout: 1_200_000,
}, async () => {
  let decided = 0;
  const history = fc.array(steps, { minLength: 10, maxLength: 45, size: "max" });
  await fc.assert(
    fc.asyncProperty(policies, history, oneOf(false, false, true), async (policy, told, isSemaphore) => {
      const both = new TwoStores(database, `history ${hosts++}`, policy, isSemaphore, now);
      try {
        for (const step of told) await both.run(step);
      } finally {
        now = both.now;
      }
      decided += told.length;
    }),
    { numRuns: isLong ? 3_000 : 60 },
  );
  expect(decided).toBeGreaterThan(isLong ? 30_000 : 600);
});
