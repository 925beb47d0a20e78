import {
  type BookRecord,
  type Changes,
  type Head,
  RECORD_KINDS,
  type RecordKind,
  resolveHost,
  resolveOptions,
} from "@slotkeeper/queue";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { decodeChanges, encodeChanges } from "../../src/store/change-text.ts";

/**
 * The text of a change set keeps every value of the records. `tail-text.pg.test.ts` checks the text that reaches the
 * database.
 */

const text = fc.oneof(fc.string(), fc.constantFrom("", "released", "null", "\u0001", "slot_h.x"));
/** Instants with digits that a sum with `now` may lose, from long ago, and very large ones. */
const instant = fc.oneof(
  fc.double({ min: 1.6e12, max: 1.9e12, noNaN: true }),
  fc.constantFrom(0, 0.1, 1.7e12 + 1 / 1024, Number.MAX_SAFE_INTEGER),
);
const amount = fc.oneof(fc.double({ min: 0, max: 1e15, noNaN: true }), fc.constantFrom(0, 1, 0.1));
const count = fc.nat();
const flag = fc.boolean();
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const POLICY = resolveHost(resolveOptions({ maxSlotPerIp: 0, maxWaitersPerHost: 0 }), undefined).policy;

const RECORDS: { readonly [Kind in RecordKind]: fc.Arbitrary<object> } = {
  lease: fc.record({
    fence: count,
    session: text,
    bucket: text,
    instance: text,
    grantedAt: instant,
    endsAt: instant,
    isReleased: flag,
    isProbe: flag,
    keepUntil: instant,
  }),
  offer: fc.record({ bucket: text, instance: text, offeredAt: instant, lapsesAt: instant, isProbe: flag }),
  waiter: fc.record({
    instance: text,
    bucket: text,
    weight: amount,
    arrivedAt: instant,
    deadlineAt: instant,
    openMs: amount,
    isInside: flag,
    awayAt: maybe(instant),
  }),
  session: fc.record({
    end: fc.constantFrom("timeout", "canceled", "throttled", "released"),
    keepUntil: instant,
    instance: maybe(text),
    isExtended: maybe(flag),
    code: maybe(count),
    retryAt: maybe(instant),
  }),
  account: fc.record({
    weight: amount,
    usedMs: amount,
    asOf: instant,
    denyUntil: maybe(instant),
    denyReason: maybe(fc.constantFrom("ip-limit", "cooldown")),
    waitCount: maybe(count),
    waitCountedAt: maybe(instant),
    virtualTime: maybe(amount),
  }),
  cooldown: fc.record({ until: instant }),
  absence: fc.record({ missedAt: instant }),
  limits: fc.record({
    policy: fc.constant(POLICY),
    loadedAt: instant,
    live: maybe(fc.constantFrom({ slots: 3 }, { slots: Number.POSITIVE_INFINITY })),
  }),
};

const record = fc
  .constantFrom(...RECORD_KINDS)
  .chain((kind) => fc.tuple(text, RECORDS[kind]).map(([key, data]) => ({ kind, key, ...data }) as BookRecord));

const head = fc.record({
  hostname: maybe(text),
  slots: fc.oneof(count, fc.constant(Number.POSITIVE_INFINITY)),
  fence: count,
  now: instant,
  progress: amount,
  meterAt: instant,
  lastEndAt: maybe(instant),
  capacity: maybe(count),
  breaker: fc.record({
    openedAt: maybe(instant),
    code: count,
    windowStartAt: maybe(instant),
    errors: count,
    successes: count,
    consecutive: count,
  }),
  avgWaitMs: amount,
  idleSince: maybe(instant),
  isHot: flag,
  probedAt: maybe(instant),
  turnAt: maybe(amount),
}) as fc.Arbitrary<Head>;

const changes = fc.record({
  head,
  puts: fc.array(record, { maxLength: 12 }),
  dels: fc.array(fc.tuple(fc.constantFrom(...RECORD_KINDS), text), { maxLength: 6 }),
});

test("any changes are decoded exactly as they were encoded", () => {
  const property = fc.property(changes, (written) => {
    const read: Changes = decodeChanges(JSON.parse(encodeChanges(written, written.head)));
    // An optional field may be set to undefined: `toEqual` treats that as missing.
    expect(read).toEqual(written);
  });
  fc.assert(property, { numRuns: 2_000 });
});
