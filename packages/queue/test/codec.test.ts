import {
  type BookImage,
  type BookRecord,
  decodeBook,
  decodeChanges,
  encodeFields,
  type Head,
  newHead,
  type RecordRow,
  recordOfRow,
  resolveHost,
  resolveOptions,
} from "@slotkeeper/queue";
import { RECORD_KINDS } from "@slotkeeper/queue/internals";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";

/** What a store does with a value: it keeps its text. */
const stored = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;
/** The record as a row of a table, after it was written and read. */
const rowOf = (record: BookRecord): RecordRow => [record.kind, record.key, JSON.parse(encodeFields(record))];

/** A record or a head with its optional fields present, absent, or set to undefined. */
function some<T extends object>(
  required: { [K in keyof T]: fc.Arbitrary<T[K]> },
  optional: object = {},
): fc.Arbitrary<T> {
  const maybe = Object.entries(optional).map(([name, value]) => [name, fc.option(value, { nil: undefined })]);
  const model = { ...required, ...Object.fromEntries(maybe) };
  return fc.record(model, { requiredKeys: Object.keys(required) as never }) as fc.Arbitrary<T>;
}

const text = fc.string({ unit: "grapheme", maxLength: 8 });
const name = fc.constantFrom("tokens", "tokens tenant acme", "a b", "é'\"\\");
const at = fc.double({ min: 0, max: 1e14, noNaN: true });
const count = fc.nat(100);
const flag = fc.boolean();
const amounts = fc.dictionary(name, at, { maxKeys: 3, noNullPrototype: true });
const bounded = fc.constantFrom(1, 7, Number.POSITIVE_INFINITY);

const demand = some(
  {},
  { width: count, cost: amounts, keys: fc.dictionary(name, text, { noNullPrototype: true }), class: text },
);
const charge = some({ at, costs: amounts }, { asked: demand, short: fc.array(text), counted: at });
const level = some(
  { spent: at, at, fullAt: at },
  { lowest: fc.record({ times: fc.array(at), levels: fc.array(at) }, { noNullPrototype: true }) },
);

const policies = [
  {},
  { maxSlotPerIp: -1, maxWaitersPerHost: 0, maxWaitersPerIp: 5 },
  {
    maxSlotPerHost: 20,
    budgets: { tokens: { limit: 10, perSeconds: 1, burst: 5, shadow: true } },
    keys: { tenant: { slots: 2, required: true, for: { "a b": { slots: 3 } } } },
    classes: { chat: { weight: 4 }, batch: { ceiling: 10 } },
    order: "budget:tokens",
    breaker: { protectHttpCodes: [503], consecutiveErrors: 0 },
  },
] as const;
const policy = fc.constantFrom(...policies.map((config) => resolveHost(resolveOptions(config as never), "h").policy));

const RECORDS: { readonly [K in BookRecord["kind"]]: fc.Arbitrary<BookRecord> } = {
  lease: some(
    {
      kind: fc.constant("lease"),
      key: text,
      fence: count,
      session: text,
      bucket: text,
      instance: text,
      grantedAt: at,
      endsAt: at,
      isReleased: flag,
      isProbe: flag,
      keepUntil: at,
      width: count,
    },
    { charge },
  ),
  offer: some(
    {
      kind: fc.constant("offer"),
      key: text,
      bucket: text,
      instance: text,
      offeredAt: at,
      lapsesAt: at,
      isProbe: flag,
      width: count,
    },
    { charge },
  ),
  waiter: some(
    {
      kind: fc.constant("waiter"),
      key: text,
      instance: text,
      bucket: text,
      weight: at,
      arrivedAt: at,
      deadlineAt: at,
      openMs: at,
      isInside: flag,
    },
    { awayAt: at, demand },
  ),
  ending: some(
    {
      kind: fc.constant("ending"),
      key: text,
      end: fc.constantFrom("timeout", "canceled", "throttled", "released", "impossible", "dropped"),
      keepUntil: at,
    },
    { endedAt: at, instance: text, code: count, retryAt: at },
  ),
  account: some(
    { kind: fc.constant("account"), key: text, weight: at, usedMs: at, asOf: at },
    {
      refusedAt: at,
      weighted: some({ virtualTime: at, waitCount: count }, { waitCountedAt: at, passedAt: at }),
      charged: at,
    },
  ),
  cooldown: some({ kind: fc.constant("cooldown"), key: text, until: at }),
  absence: some({ kind: fc.constant("absence"), key: text, missedAt: at }),
  budget: some({ kind: fc.constant("budget"), key: name, limit: at, perMs: at, burst: at, level }),
  limits: some(
    { kind: fc.constant("limits"), key: fc.constant(""), policy, loadedAt: at },
    { hostname: text, live: some({}, { slots: count, slotsPerBucket: bounded, isPaused: fc.constant(true) }) },
  ),
};

const head: fc.Arbitrary<Head> = some(
  {
    slots: bounded,
    fence: count,
    now: at,
    progress: at,
    meterAt: at,
    breaker: some(
      { code: count, errors: count, successes: count, consecutive: count },
      { openedAt: at, windowStartAt: at },
    ),
    avgWaitMs: at,
  },
  {
    hostname: text,
    lastEndAt: at,
    capacity: count,
    idleSince: at,
    weighted: some({ isHot: flag }, { triedAt: at, turnAt: at }),
    forgottenAt: at,
    first: text,
    fullAt: at,
    chargeLevel: at,
    classes: fc.dictionary(name, some({ weight: at, usedMs: at, progress: at, activeAt: at }, { charged: at }), {
      noNullPrototype: true,
    }),
  },
);

const anyRecord = fc.oneof(...RECORD_KINDS.map((kind) => RECORDS[kind]));

describe("heads and records in a store", () => {
  test("the list of kinds has every kind of record once", () => {
    expect(RECORD_KINDS.toSorted()).toEqual(Object.keys(RECORDS).toSorted());
  });

  test.each(RECORD_KINDS)("a record of kind %s comes back from a row as it was, with any optional fields", (kind) => {
    fc.assert(
      fc.property(RECORDS[kind], (record) => {
        const row = rowOf(record);
        expect(row[2]).not.toHaveProperty("kind");
        expect(row[2]).not.toHaveProperty("key");
        expect(decodeChanges({ head: undefined, puts: [recordOfRow(row)], dels: [] }).puts).toEqual([record]);
      }),
    );
  });

  test("a whole book comes back from JSON as it was", () => {
    fc.assert(
      fc.property(head, fc.array(anyRecord), (own, records) => {
        const image: BookImage = { head: own, records };
        expect(decodeBook(stored(image))).toEqual(image);
      }),
    );
  });

  test("changes come back from JSON as they were, and those that forget a host have no head", () => {
    const names = fc.array(fc.tuple(fc.constantFrom(...RECORD_KINDS), text));
    fc.assert(
      fc.property(fc.option(head, { nil: undefined }), fc.array(anyRecord), names, (own, puts, dels) => {
        const changes = { head: own, puts, dels };
        const decoded = decodeChanges(stored(changes));
        expect(decoded).toEqual(changes);
        expect(decoded.head === undefined).toBe(own === undefined);
      }),
    );
  });
});

describe("what earlier versions have stored stays readable", () => {
  const AT = 1_700_000_000_000;
  const PLAIN = { fence: 7, now: AT, progress: 0.5, meterAt: AT, avgWaitMs: 12 };
  const BREAKER = { code: 0, errors: 0, successes: 0, consecutive: 0 };
  const WAITER = '{"instance":"i","bucket":"","weight":2,"arrivedAt":5,"deadlineAt":9,"openMs":60000,"isInside":true}';
  const LEASE =
    '{"fence":7,"session":"s","bucket":"b","instance":"i","grantedAt":1,"endsAt":30001.5,"isReleased":false,"isProbe":false,"keepUntil":60001,"width":1}';
  const LEVEL = '{"spent":4,"at":1,"fullAt":0,"lowest":{"times":[1],"levels":[2]}}';

  test.each<[string, string, string, object]>([
    [
      "lease",
      "slot_h.x",
      LEASE,
      {
        fence: 7,
        session: "s",
        bucket: "b",
        instance: "i",
        grantedAt: 1,
        endsAt: 30_001.5,
        isReleased: false,
        isProbe: false,
        keepUntil: 60_001,
        width: 1,
      },
    ],
    [
      "offer",
      "s",
      '{"bucket":"b","instance":"i","offeredAt":1,"lapsesAt":2,"isProbe":true,"width":2,"charge":{"at":1,"costs":{"tokens tenant a b":3}}}',
      {
        bucket: "b",
        instance: "i",
        offeredAt: 1,
        lapsesAt: 2,
        isProbe: true,
        width: 2,
        charge: { at: 1, costs: { "tokens tenant a b": 3 } },
      },
    ],
    [
      "waiter",
      "s",
      WAITER,
      { instance: "i", bucket: "", weight: 2, arrivedAt: 5, deadlineAt: 9, openMs: 60_000, isInside: true },
    ],
    [
      "ending",
      "s",
      '{"end":"throttled","keepUntil":9,"code":503,"retryAt":10}',
      { end: "throttled", keepUntil: 9, code: 503, retryAt: 10 },
    ],
    [
      "account",
      "chat\nb",
      '{"weight":1,"usedMs":250.5,"asOf":3,"charged":4}',
      { weight: 1, usedMs: 250.5, asOf: 3, charged: 4 },
    ],
    ["cooldown", "b", '{"until":500.125}', { until: 500.125 }],
    ["absence", "i", '{"missedAt":3}', { missedAt: 3 }],
    [
      "budget",
      "tokens tenant acme",
      `{"limit":10,"perMs":1000,"burst":5,"level":${LEVEL}}`,
      {
        limit: 10,
        perMs: 1_000,
        burst: 5,
        level: { spent: 4, at: 1, fullAt: 0, lowest: { times: [1], levels: [2] } },
      },
    ],
  ])("the row of kind %s, and it is still written so", (kind, key, fields, expected) => {
    const record = recordOfRow([kind, key, JSON.parse(fields)] as unknown as RecordRow);
    expect(decodeBook({ head: newHead(AT, 0), records: [record] }).records).toEqual([{ kind, key, ...expected }]);
    expect(encodeFields({ kind, key, ...expected } as BookRecord)).toBe(fields);
  });

  test("limits that are null are none, those of an operator as those of the configuration", () => {
    const fields = {
      policy: { slots: 5, slotsPerBucket: null, waiters: 0, order: "fifo", breaker: { openMs: 60_000 } },
      loadedAt: 1,
      live: { slots: 9, slotsPerBucket: null, isPaused: true },
    };
    const read = decodeChanges({ head: undefined, puts: [recordOfRow(["limits", "", fields])], dels: [] });
    const none = Number.POSITIVE_INFINITY;
    expect(read.puts).toEqual([
      {
        kind: "limits",
        key: "",
        policy: { slots: 5, slotsPerBucket: none, waiters: 0, order: "fifo", breaker: { openMs: 60_000 } },
        loadedAt: 1,
        live: { slots: 9, slotsPerBucket: none, isPaused: true },
      },
    ]);
  });

  test("limits that no operator has changed have no `live`, not even an empty one", () => {
    const row: RecordRow = ["limits", "", { policy: { slots: 5 }, loadedAt: 1 }];
    expect(decodeChanges({ head: undefined, puts: [recordOfRow(row)], dels: [] }).puts[0]).not.toHaveProperty("live");
  });

  test("a head with `slots` null has no limit, and one with a number has that number, also 0", () => {
    const slotsOf = (slots: number | null) =>
      decodeBook({ head: { ...PLAIN, slots, breaker: BREAKER } as never, records: [] }).head;
    expect(slotsOf(null)).toEqual({ ...PLAIN, slots: Number.POSITIVE_INFINITY, breaker: BREAKER });
    expect(slotsOf(3)).toEqual({ ...PLAIN, slots: 3, breaker: BREAKER });
    expect(slotsOf(0).slots).toBe(0);
  });

  test("a lease whose column `charge` is null was charged nothing", () => {
    const row: RecordRow = ["lease", "slot_h.x", { ...JSON.parse(LEASE), charge: null }];
    const [lease] = decodeChanges({ head: undefined, puts: [recordOfRow(row)], dels: [] }).puts;
    expect(lease).toEqual({ kind: "lease", key: "slot_h.x", ...JSON.parse(LEASE) });
  });

  test("a lease keeps the charge of its column", () => {
    const charge = { at: 1, costs: { tokens: 3 }, asked: { width: 2 } };
    const row: RecordRow = ["lease", "slot_h.x", { ...JSON.parse(LEASE), charge }];
    expect(decodeChanges({ head: undefined, puts: [recordOfRow(row)], dels: [] }).puts).toMatchObject([{ charge }]);
  });
});
