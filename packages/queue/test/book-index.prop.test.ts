import { isDeepStrictEqual } from "node:util";
import { DEFAULT_CLASS, type Demand, widthOf } from "@slotkeeper/protocol";
import { type BookRecord, type HostPolicy, resolveHost, resolveOptions, type WaiterRecord } from "@slotkeeper/queue";
import { Book } from "@slotkeeper/queue/internals";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { NaiveIndex } from "./naive-index.ts";

/**
 * BOOK4: after any puts and dels in any order, the index answers as a search through the records does. This covers the
 * waiter pool (WPOOL1 to WPOOL5), the ladder of keys (LADDER1 to LADDER5), and the refills of budgets.
 */

const POOL = { maxSlotPerHost: 4, maxSlotPerIp: 2, maxWaitersPerHost: 3, maxWaitersPerIp: 2 } as const;
const CALLS = { calls: { limit: 1, perSeconds: 1, burst: 2 } } as const;
const CONFIGS = [
  POOL,
  { ...POOL, keys: { user: { budgets: CALLS }, tenant: { slots: 2, for: { y: { slots: 1, budgets: CALLS } } } } },
  { ...POOL, maxWaitersPerHost: 5, keys: { tenant: { slots: 1 }, bucket: { budgets: CALLS } } },
  {
    ...POOL,
    maxSlotPerIp: 1,
    maxWaitersPerIp: 1,
    keys: {
      tenant: { slots: 1, required: true, shadow: true },
      user: { slots: 1, budgets: { calls: { ...CALLS.calls, shadow: true } } },
    },
  },
] as const;
const POLICIES = CONFIGS.map((config) => resolveHost(resolveOptions(config), undefined).policy);

const SESSIONS = ["s0", "s1", "s2", "s3", "s4", "s5"];
const BUCKETS = ["", "a", "b"];
const at = fc.integer({ min: 0, max: 12 }).map((quarter) => quarter * 250);
const session = fc.constantFrom(...SESSIONS);
const bucket = fc.constantFrom(...BUCKETS);
const instance = fc.constantFrom("i", "j");
const width = fc.constantFrom(1, 1, 1, 2, 3);
const demand = fc
  .option(
    fc.record(
      {
        width,
        keys: fc.record(
          { tenant: fc.constantFrom("x", "y"), user: fc.constantFrom("u", "v") },
          { requiredKeys: [], noNullPrototype: true },
        ),
        cost: fc.record({ calls: fc.nat(3) }, { noNullPrototype: true }),
      },
      { requiredKeys: [], noNullPrototype: true },
    ),
    { nil: undefined, freq: 4 },
  )
  .chain((own) => fc.constantFrom<(Demand | undefined)[]>(own, own, own, { ...own, class: "chat" }));

const parts = {
  instance,
  bucket,
  arrivedAt: at,
  deadlineAt: at.map((ms) => ms + 250),
  isInside: fc.constantFrom(true, true, false),
  awayAt: fc.option(fc.constantFrom(0, 250, 500, 1_000), { nil: undefined, freq: 2 }),
  demand,
};
const waiter = fc
  .record(parts)
  .chain((own) => session.map((key): BookRecord => ({ kind: "waiter", key, weight: 1, openMs: 1_000, ...own })));
/** It waits for a place with its tenant, and its client is present. */
const outsider = fc.record(parts).chain((own) =>
  session.map((key): BookRecord => {
    const asked = { ...own.demand, keys: { tenant: "x" } };
    return { kind: "waiter", key, weight: 1, openMs: 1_000, ...own, isInside: false, awayAt: undefined, demand: asked };
  }),
);
const slot = fc.record({ bucket, demand }).map(({ bucket: of, demand: asked }) => ({
  bucket: of,
  instance: "i",
  isProbe: false,
  width: widthOf(asked),
  charge: { at: 0, costs: {}, asked },
}));
const offer = fc
  .tuple(session, slot)
  .map(([key, own]): BookRecord => ({ kind: "offer", key, offeredAt: 0, lapsesAt: 9, ...own }));
const lease = slot.map(
  (own): BookRecord => ({
    kind: "lease",
    key: "",
    fence: 1,
    session: "",
    grantedAt: 0,
    endsAt: 9_000,
    isReleased: false,
    keepUntil: 9_000,
    ...own,
  }),
);
const accounts = ["calls", "calls user u", "calls user v", "calls tenant y", "calls bucket a", "calls tenant"];
/** Values of keys, as the index has them. */
const VALUES = ["user u", "user v", "tenant y", "bucket a", "tenant"];
const budget = fc
  .record({
    key: fc.constantFrom(...accounts),
    spent: fc.integer({ min: 1, max: 4 }),
    at,
    limit: fc.constantFrom(1, 2),
  })
  .map(({ key, spent, at: from, limit }): BookRecord => {
    const level = { spent, at: from, fullAt: 0, lowest: undefined };
    return { kind: "budget", key, limit, perMs: 1_000, burst: 2, level };
  });
const limits = fc
  .constantFrom(...POLICIES)
  .map((policy): BookRecord => ({ kind: "limits", key: "", policy, loadedAt: 0 }));
const absence = instance.map((key): BookRecord => ({ kind: "absence", key, missedAt: 0 }));
const cooldown = bucket.map((key): BookRecord => ({ kind: "cooldown", key, until: 9_000 }));

const record = fc.oneof(
  { weight: 10, arbitrary: waiter },
  { weight: 2, arbitrary: offer },
  { weight: 5, arbitrary: lease },
  { weight: 2, arbitrary: budget },
  ...[limits, absence, cooldown].map((arbitrary) => ({ weight: 1, arbitrary })),
);
/** What changes of a waiter that the book has. Most decisions change only its place, and some one more field. */
const entering = fc.constant({ isInside: true });
const change = fc.oneof(
  fc.boolean().map((isInside) => ({ isInside })),
  ...Object.entries(parts).map(([name, value]) =>
    fc.tuple(value, entering).map(([to, more]) => ({ [name]: to, ...more })),
  ),
);
type Step =
  | { readonly kind: "put"; readonly record: BookRecord }
  | { readonly kind: "del"; readonly among: number }
  | { readonly kind: "change"; readonly session: string; readonly to: Partial<WaiterRecord> }
  | { readonly kind: "time"; readonly byMs: number; readonly collectMs: number }
  | { readonly kind: "look" }
  | { readonly kind: "undo" }
  | { readonly kind: "keep" };
const step = fc.oneof<fc.WeightedArbitrary<Step>[]>(
  { weight: 8, arbitrary: fc.record({ kind: fc.constant("put" as const), record }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("del" as const), among: fc.nat(99) }) },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant("change" as const), session, to: change }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("time" as const),
      byMs: fc.constantFrom(0, 250, 500, 1_000, -250, -1_000),
      collectMs: fc.constantFrom(500, 500, 250, 1_000),
    }),
  },
  { weight: 1, arbitrary: fc.constantFrom<Step[]>({ kind: "undo" }, { kind: "keep" }) },
  { weight: 2, arbitrary: fc.constant<Step>({ kind: "look" }) },
);

const crowd = fc.array(waiter, { minLength: 3, maxLength: 8 });
const steps = fc.array(step, { minLength: 5, maxLength: 25, size: "max" });

/** A book, and the time that its index was last given. */
class Subject {
  readonly book = new Book("h", 0);
  collectMs = 500;
  #tokens = 0;

  take(one: Step): void {
    const { book } = this;
    if (one.kind === "put") this.#put(one.record);
    else if (one.kind === "del") this.#del(one.among);
    else if (one.kind === "time") this.#pass(one.byMs, one.collectMs);
    else if (one.kind === "keep") book.begin();
    else if (one.kind === "undo") book.undo();
    else if (one.kind === "look") this.look();
    else {
      const before = book.get("waiter", one.session);
      if (before !== undefined) book.put({ ...before, ...one.to });
    }
  }

  /** Compares all answers. Not after each step: the index brings itself up to date when it is read. */
  look(): void {
    const naive = new NaiveIndex(this.book, this.collectMs);
    const { lines } = naive;
    const answers = { ...answersOf(this.book, lines), waiters: answersAbout(this.book, naive) };
    const expected = { ...expectedOf(this.book, naive, lines), waiters: expectedAbout(naive) };
    if (!isDeepStrictEqual(answers, expected)) expect(answers).toEqual(expected);
  }

  /** A token is never used again: a lease keeps its bucket and its width. */
  #put(record: BookRecord): void {
    this.book.put(record.kind === "lease" ? { ...record, key: `t${this.#tokens++}` } : record);
  }

  #del(among: number): void {
    const all = [...this.book.image().records].filter(({ kind }) => kind !== "limits" && kind !== "account");
    const gone = all[among % Math.max(1, all.length)];
    if (gone !== undefined) this.book.del(gone.kind, gone.key);
  }

  #pass(byMs: number, collectMs: number): void {
    const { book } = this;
    this.collectMs = collectMs;
    book.moveTo(book.now + byMs);
    book.index.useTime(book.now, collectMs);
  }
}

/** What the index answers, in the form of `NaiveIndex`. */
function answersOf({ index, policy }: Book, lines: NaiveIndex["lines"]) {
  const { classes, ladder, refills } = index;
  return {
    lines: lines.map(({ ofClass, bucket: of }) => {
      const line = index.line(ofClass === DEFAULT_CLASS ? of : `${ofClass}\n${of}`);
      if (line === undefined) return undefined;
      const { places, waiting, outsiders, parked, parkedPresent, inFlight, isGrantable, isGrantableOutside } = line;
      const [youngest, oldestOutside] = [line.young, line.outside].map((heap) => heap.peek()?.record.key);
      const keys = { youngest, oldestOutside, head: line.head?.record.key };
      return { places, waiting, outsiders, parked, parkedPresent, inFlight, isGrantable, isGrantableOutside, ...keys };
    }),
    classes: classes.map(({ name, pool, inFlight, waiting, longestAway, heldBack }) => {
      const swap = pool.swap(policy);
      return {
        name,
        inFlight,
        waiting,
        longestAway: longestAway?.record.key,
        youngestHeldBack: heldBack?.peek()?.record.key,
        places: pool.size,
        hasOutsiders: pool.hasOutsiders,
        isFull: pool.isFull(policy),
        next: pool.next(policy)?.record.key,
        swap: swap && { leaves: swap.leaves.record.key, enters: swap.enters.record.key },
      };
    }),
    ladder: {
      lines: (ladder?.lines ?? [])
        .map(({ ofClass, use, waiting, passed }) => {
          const id = `${ofClass} ${use.name} ${use.value}`;
          return `${id}: ${use.inFlight} held, ${waiting.size} here, passed ${passed?.entry.record.key}`;
        })
        .sort(),
      nextAt: ladder?.nextAt,
      overdue: ladder?.overdue?.deadlineAt,
    },
    refills: { first: refills.next?.fullAt, last: refills.fullAt, values: refills.values },
    spent: VALUES.filter((value) => refills.has(value)),
    instances: [...index.instances].sort(),
    inFlight: index.inFlight,
    widest: index.widths.widest,
  };
}

/** The same, from the records. */
function expectedOf(book: Book, naive: NaiveIndex, lines: NaiveIndex["lines"]) {
  const { waiters, slots } = naive;
  const inside = waiters.filter(({ isInside }) => isInside);
  return {
    lines: lines.map((one) => naive.line(one)),
    classes: book.index.classes.map(({ name }) => ({ name, ...naive.ofClass(name) })),
    ladder: naive.ladder(),
    refills: { ...naive.refills(), values: naive.refills().values.length },
    spent: VALUES.filter((value) => naive.refills().values.includes(value)),
    instances: [...new Set(waiters.map((one) => one.instance))].sort(),
    inFlight: slots.reduce((sum, one) => sum + one.width, 0),
    widest: Math.max(1, ...slots.map((one) => one.width), ...inside.map((one) => widthOf(one.demand))),
  };
}

/** Questions about each waiter, and about a new one like it. */
function answersAbout({ index, policy }: Book, naive: NaiveIndex) {
  return naive.waiters.map((one) => {
    const name = one.demand?.class ?? DEFAULT_CLASS;
    const { places } = naive.line({ ofClass: name, bucket: one.bucket });
    const admits = [Number.POSITIVE_INFINITY, one.arrivedAt].map((returnedTo) => {
      const { isAdmitted, displaces } =
        index.ofClass(name)?.pool.admits({ bucket: one.bucket, places }, policy, returnedTo) ?? {};
      return { isAdmitted, displaces: displaces?.record.key };
    });
    return {
      heldAt: index.heldAt(one.key),
      keysAdmit: index.keysAdmit(one),
      shortOf: index.heldKeys?.shortOf(one, widthOf(one.demand)) ?? [],
      isOver: index.heldKeys?.isOver(one.demand?.keys) ?? false,
      admits,
    };
  });
}

/** The same, from the records. */
function expectedAbout(naive: NaiveIndex) {
  return naive.waiters.map((one) => {
    const of = { ofClass: one.demand?.class ?? DEFAULT_CLASS, bucket: one.bucket };
    return {
      heldAt: naive.heldAt(one.key),
      keysAdmit: naive.admitsKeys(one),
      shortOf: naive.shortOf(one),
      isOver: naive.isOver(one.demand?.keys ?? {}),
      admits: [naive.admits(of), naive.admits(of, one.arrivedAt)],
    };
  });
}

function check(policy: HostPolicy, before: readonly BookRecord[], changes: readonly Step[]): void {
  const subject = new Subject();
  const { book } = subject;
  book.put({ kind: "limits", key: "", policy, loadedAt: 0 });
  book.index.useTime(0, subject.collectMs);
  for (const one of before) book.put(one);
  // Reading the index brings it up to date, as each decision does.
  void book.index.classes;
  book.begin();
  for (const one of changes) subject.take(one);
  subject.look();
}

const starts = POLICIES.flatMap((policy) => {
  const keys = policy.keys?.map(({ name }) => name).join(" and ") ?? "none";
  return [1, 2, 3, 4, 5, 6].map((seed) => [keys, seed, policy] as const);
});

test.each(starts)(
  "at a host with the keys %s, the index answers as a search through the records does, whatever was changed before: %i",
  (_, seed, policy) => {
    fc.assert(
      fc.property(crowd, steps, (waiters, changes) => check(policy, waiters, changes)),
      { numRuns: 8, seed },
    );
  },
);

test.each(starts)(
  "at a host with the keys %s, a waiter may change in anything else as it gets its place: %i",
  (_, seed, policy) => {
    const absent = absence.map((record): Step => ({ kind: "put", record }));
    const spent = budget.map((record): Step => ({ kind: "put", record }));
    const enters = fc.record({ kind: fc.constant("change" as const), session, to: change });
    const few = fc.array(fc.oneof({ weight: 6, arbitrary: enters }, absent, spent), { minLength: 2, maxLength: 6 });
    fc.assert(
      fc.property(fc.array(outsider, { minLength: 4, maxLength: 8 }), few, (waiters, changes) =>
        check(policy, waiters, changes),
      ),
      { numRuns: 15, seed },
    );
  },
);

const outside = (key: string, arrivedAt: number, asked: Demand): WaiterRecord => ({
  kind: "waiter",
  key,
  instance: "i",
  bucket: "a",
  weight: 1,
  arrivedAt,
  deadlineAt: 9_000,
  openMs: 1_000,
  isInside: false,
  demand: asked,
});

test("a waiter that is the youngest of its tenant when it gets its place stands behind the others there", () => {
  const tenant = { keys: { tenant: "x" } };
  const toYoungest: Step = { kind: "change", session: "s0", to: { isInside: true, arrivedAt: 500 } };
  for (const policy of POLICIES) check(policy, [outside("s0", 0, tenant), outside("s1", 250, tenant)], [toYoungest]);
});

test("a waiter passes its key exactly when the ladder says that it may, and steps back if the time goes back", () => {
  const subject = new Subject();
  const { book } = subject;
  const level = { spent: 2, at: 0, fullAt: 0, lowest: undefined };
  book.put({ kind: "limits", key: "", policy: POLICIES[1] as HostPolicy, loadedAt: 0 });
  book.put({ kind: "budget", key: "calls user u", limit: 1, perMs: 1_000, burst: 2, level });
  book.put(outside("s0", 0, { keys: { user: "u" }, cost: { calls: 1 } }));
  const moveTo = (now: number) => {
    book.moveTo(now);
    book.index.useTime(now, subject.collectMs);
    subject.look();
    return book.index.heldAt("s0")?.key;
  };
  expect(moveTo(0)).toBe("user");
  const at = book.index.ladder?.nextAt ?? 0;
  expect(at).toBeCloseTo(1_000, 3);
  expect([at - 1, at, at - 1, at + 1].map(moveTo)).toEqual(["user", undefined, "user", undefined]);
});
