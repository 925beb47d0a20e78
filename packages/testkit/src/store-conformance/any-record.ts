import { type BookRecord, type Head, type RecordKind, resolveHost, resolveOptions } from "@slotkeeper/queue";
import { RECORD_KINDS } from "@slotkeeper/queue/internals";
import * as fc from "fast-check";

/** Random heads and records with values that an encoding may lose: odd text, long fractions, very large numbers, absent fields. */

/** Text that means something to JSON, to SQL patterns or to an encoding with separators. */
const ODD_TEXT = [
  "",
  "released",
  "null",
  "1",
  "key",
  "\u0001",
  "\\u0001",
  'a"b\\c\n',
  "\\1&%_",
  "{}",
  "slot_h.x",
  "ä€😀",
];
const text = fc.oneof(fc.string(), fc.constantFrom(...ODD_TEXT));
/** Some instants are kept in whole seconds as well, for direct SQL callers. */
const likely = fc.double({ min: 1.6e12, max: 1.9e12, noNaN: true });
const instant = fc.oneof(likely, fc.constantFrom(0, 0.1, 1.7e12 + 1 / 1024, Number.MAX_SAFE_INTEGER));
const amount = fc.oneof(fc.double({ min: 0, max: 1e15, noNaN: true }), fc.constantFrom(0, 1, 0.1));
const count = fc.nat();
const flag = fc.boolean();
const width = fc.integer({ min: 1, max: 3 });
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const costs = fc.dictionary(fc.constantFrom("tokens", "requests", "a-b_c"), amount, {
  maxKeys: 3,
  noNullPrototype: true,
});
const keys = fc.dictionary(fc.constantFrom("tenant", "user"), text, { maxKeys: 2, noNullPrototype: true });
const demand = maybe(fc.record({ width: maybe(width), cost: maybe(costs), keys: maybe(keys) }));
const charge = maybe(
  fc.record({
    at: instant,
    costs,
    asked: demand,
    short: maybe(fc.array(text, { maxLength: 2 })),
    counted: maybe(amount),
  }),
);
const POLICY = resolveHost(resolveOptions({ maxSlotPerIp: -1, maxWaitersPerHost: 0 }), undefined).policy;

type Fields<K extends RecordKind> = Omit<Extract<BookRecord, { kind: K }>, "kind" | "key">;

/** A field that is added to a record must be added here, or the compiler complains. */
const FIELDS: { readonly [K in RecordKind]: { readonly [F in keyof Required<Fields<K>>]: fc.Arbitrary<unknown> } } = {
  lease: {
    fence: count,
    session: text,
    bucket: text,
    instance: text,
    grantedAt: instant,
    endsAt: instant,
    isReleased: flag,
    isProbe: flag,
    keepUntil: instant,
    width,
    charge,
  },
  offer: { bucket: text, instance: text, offeredAt: instant, lapsesAt: instant, isProbe: flag, width, charge },
  waiter: {
    instance: text,
    bucket: text,
    weight: amount,
    arrivedAt: instant,
    deadlineAt: instant,
    openMs: amount,
    isInside: flag,
    awayAt: maybe(instant),
    demand,
  },
  budget: {
    limit: amount,
    perMs: amount,
    burst: amount,
    level: fc.record({
      spent: amount,
      at: instant,
      fullAt: instant,
      lowest: maybe(
        fc.record({ times: fc.array(instant, { maxLength: 3 }), levels: fc.array(amount, { maxLength: 3 }) }),
      ),
    }),
  },
  ending: {
    end: fc.constantFrom("timeout", "canceled", "throttled", "released", "impossible", "dropped"),
    keepUntil: instant,
    endedAt: maybe(instant),
    instance: maybe(text),
    code: maybe(count),
    retryAt: maybe(instant),
  },
  account: {
    weight: amount,
    usedMs: amount,
    asOf: instant,
    refusedAt: maybe(instant),
    weighted: maybe(fc.record({ virtualTime: amount, waitCount: count, waitCountedAt: instant })),
    charged: maybe(amount),
  },
  cooldown: { until: instant },
  absence: { missedAt: instant },
  limits: {
    policy: fc.constant(POLICY),
    loadedAt: instant,
    hostname: maybe(text),
    live: maybe(fc.constantFrom({ slots: 3 }, { slots: Number.POSITIVE_INFINITY })),
  },
};

/** Any record of any kind. Leases and offers occupy slots, so a test gives their times and fences itself. */
export const anyRecord: fc.Arbitrary<BookRecord> = fc
  .constantFrom(...RECORD_KINDS)
  .chain((kind) =>
    fc
      .tuple(
        kind === "limits" ? fc.constant("") : text,
        fc.record(FIELDS[kind] as Record<string, fc.Arbitrary<unknown>>),
      )
      .map(([key, fields]) => ({ kind, key, ...fields }) as unknown as BookRecord),
  );

/** The fields of a head that a store keeps without a rule of its own. */
export const anyHead: fc.Arbitrary<Omit<Head, "slots" | "fence" | "now">> = fc.record({
  hostname: maybe(text),
  progress: amount,
  meterAt: instant,
  lastEndAt: maybe(instant),
  capacity: maybe(count),
  breaker: fc.record({
    openedAt: maybe(likely),
    code: count,
    windowStartAt: maybe(likely),
    errors: count,
    successes: count,
    consecutive: count,
  }),
  avgWaitMs: amount,
  idleSince: maybe(instant),
  weighted: maybe(fc.record({ isHot: flag, triedAt: instant, turnAt: amount })),
  forgottenAt: maybe(instant),
  first: maybe(text),
  fullAt: maybe(instant),
  chargeLevel: maybe(amount),
}) as never;
