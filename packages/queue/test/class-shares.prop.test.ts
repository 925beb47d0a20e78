import type { ClassPolicy } from "@slotkeeper/protocol";
import { type ClassView, type HostSnapshot, snapshotOf } from "@slotkeeper/queue";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { arrive, Decider, START } from "./decider.ts";

/** CLASS2 of `classes.ts`: the shares of classes in the state of a host, compared with a search for the level. */

const NAMES = ["default", "chat", "batch", "bulk"] as const;
const LONG_MS = 9_000_000;

type Name = (typeof NAMES)[number];

interface Case {
  readonly slots: number;
  readonly classes: { readonly [name in Name]: ClassPolicy };
  /** The classes of the requests that come first, and of those that come when they hold their slots. */
  readonly first: readonly Name[];
  readonly second: readonly Name[];
}

const classOf = fc.record({
  weight: fc.constantFrom(0.25, 0.5, 1, 2, 3, 8),
  floor: fc.constantFrom(0, 0, 0, 1, 2),
  more: fc.constantFrom(undefined, undefined, 0, 1, 2, 4),
});

interface Kind {
  readonly hasFloors: boolean;
  readonly hasCeilings: boolean;
}

const hosts = ({ hasFloors, hasCeilings }: Kind): fc.Arbitrary<Case> =>
  fc
    .record({
      given: fc.record({ default: classOf, chat: classOf, batch: classOf, bulk: classOf }),
      besides: fc.integer({ min: 1, max: 8 }),
      first: fc.array(fc.constantFrom(...NAMES), { minLength: 4, maxLength: 9 }),
      second: fc.array(fc.constantFrom(...NAMES), { minLength: 2, maxLength: 9 }),
    })
    .map(({ given, besides, first, second }) => {
      const floorOf = ({ floor }: (typeof given)[Name]) => (hasFloors ? floor : 0);
      const floors = Object.values(given).reduce((sum, one) => sum + floorOf(one), 0);
      const configOf = (one: (typeof given)[Name]) => {
        const [{ weight, more }, floor] = [one, floorOf(one)];
        if (more === undefined || !hasCeilings) return { weight, floor };
        return { weight, floor, ceiling: Math.max(1, floor + more) };
      };
      const { default: plain, chat, batch, bulk } = given;
      const classes = {
        default: configOf(plain),
        chat: configOf(chat),
        batch: configOf(batch),
        bulk: configOf(bulk),
      };
      return { slots: floors + besides, classes, first, second };
    });

/** Requests of these classes, each of a bucket of its own. */
function ask(host: Decider, ms: number, classes: readonly Name[]): void {
  const inputs = classes.map((name, at) => {
    const session = `${ms}-${at}`;
    return { ...arrive(session, session, ms, LONG_MS), demand: { class: name } };
  });
  host.at(
    ms,
    inputs,
    inputs.map(({ bucket }) => bucket),
  );
}

function stateOf(host: Decider, ms: number): HostSnapshot {
  return snapshotOf("h", host.book.image(), START + ms);
}

function within({ weight, floor, ceiling = Number.POSITIVE_INFINITY }: ClassView, level: number): number {
  return Math.min(ceiling, Math.max(floor, weight * level));
}

/** What a class could have if it wanted more: the slots that the others leave, filled up to the greatest level that fits. */
function expectedShare(of: ClassView, all: readonly ClassView[], slots: number): number {
  const wantsMore = (one: ClassView) => one.waiting > 0 && one.inFlight < (one.ceiling ?? Number.POSITIVE_INFINITY);
  const sharing = all.filter((one) => one.name === of.name || wantsMore(one));
  const left = all.reduce((sum, one) => sum - (sharing.includes(one) ? 0 : one.inFlight), slots);
  let [low, high] = [0, 1_000];
  for (let steps = 0; steps < 60; steps++) {
    const level = (low + high) / 2;
    const sum = sharing.reduce((sum, one) => sum + within(one, level), 0);
    if (sum <= left + 1e-9) low = level;
    else high = level;
  }
  return within(of, low);
}

describe("the share of a class", () => {
  test.each<Kind>([
    { hasFloors: false, hasCeilings: false },
    { hasFloors: true, hasCeilings: false },
    { hasFloors: false, hasCeilings: true },
    { hasFloors: true, hasCeilings: true },
  ])("is the greatest that fits beside the others by weight, above every floor and below every ceiling: %j", (kind) => {
    fc.assert(
      fc.property(hosts(kind), ({ slots, classes, first, second }) => {
        const host = new Decider({ maxSlotPerHost: slots, maxSlotPerIp: -1, maxWaitersPerHost: 1_000, classes });
        ask(host, 0, first);
        ask(host, 10, second);
        const state = stateOf(host, 10);
        expect(state.classes.map(({ name }) => name)).toEqual([...NAMES].sort());
        for (const one of state.classes) {
          expect(one.share, one.name).toBeCloseTo(expectedShare(one, state.classes, slots), 6);
          expect(one.share).toBeGreaterThanOrEqual(one.floor);
          expect(one.share).toBeLessThanOrEqual(Math.min(slots, one.ceiling ?? slots) + 1e-9);
        }
      }),
      { numRuns: 25 },
    );
  });

  test("has no floor while limits that were changed one after the other leave no slot besides the floors", () => {
    const classes = { chat: { weight: 1, floor: 3 }, batch: { weight: 2 } };
    for (const [slots, chat] of [
      [4, 3],
      [3, 1],
      [2, 2 / 3],
    ] as const) {
      const host = new Decider({ maxSlotPerHost: 5, maxSlotPerIp: -1, classes });
      ask(host, 0, ["default", "default", "default", "default", "default"]);
      host.at(1, [{ kind: "limits", limits: { slots } }], []);
      for (const { fence } of Array.from(host.book.all("lease"))) host.at(2, [{ kind: "revoke", fence }], []);
      ask(host, 3, ["chat", ...Array.from({ length: 10 }, () => "batch" as const)]);
      const shareOf = (name: string) => stateOf(host, 3).classes.find((one) => one.name === name)?.share;
      expect(shareOf("chat"), `${slots} slots`).toBeCloseTo(chat, 6);
    }
  });

  test("counts the class itself, also if it was never used: it would take a part of what the others have", () => {
    const host = new Decider({ maxSlotPerHost: 4, maxSlotPerIp: -1, classes: { chat: {}, batch: {} } });
    ask(host, 0, ["batch", "batch", "batch", "batch"]);
    ask(host, 1, ["batch"]);
    expect(stateOf(host, 1).classes.map(({ name, share }) => [name, share])).toEqual([
      ["batch", 4],
      ["chat", 2],
      ["default", 2],
    ]);
  });

  test("is at least its floor beside other classes with floors, whose weights are greater", () => {
    const classes = { chat: { weight: 1, floor: 3 }, batch: { weight: 8, floor: 1 } };
    const host = new Decider({ maxSlotPerHost: 5, maxSlotPerIp: -1, classes });
    ask(host, 0, ["batch", "chat", "batch", "chat", "batch", "chat", "batch", "chat"]);
    ask(host, 1, ["batch", "chat"]);
    const shares = new Map(stateOf(host, 1).classes.map(({ name, share }) => [name, share]));
    expect([shares.get("chat"), shares.get("batch")]).toEqual([3, 2]);
  });

  test("has no floor while a budget keeps slots free", () => {
    const host = new Decider({
      maxSlotPerHost: 10,
      maxSlotPerIp: -1,
      classes: { chat: { floor: 6 }, batch: { weight: 1 } },
      budgets: { tokens: { limit: 4, perSeconds: 3_600, default: 2 } },
    });
    ask(host, 0, ["batch", "batch", "batch", "batch", "chat", "chat"]);
    const shares = new Map(stateOf(host, 0).classes.map(({ name, share }) => [name, share]));
    // Two slots are held, and one more could be granted next.
    expect([shares.get("chat"), shares.get("batch")]).toEqual([1.5, 1.5]);
  });
});

describe("the classes of a host in its state", () => {
  const HOST = { maxSlotPerHost: 2, maxSlotPerIp: -1, classes: { chat: { weight: 3 }, batch: { ceiling: 1 } } };

  test("are listed by name with what they hold, how many wait, and their limits, used or not", () => {
    const host = new Decider(HOST);
    ask(host, 0, ["chat", "chat", "batch", "batch", "chat"]);
    expect(stateOf(host, 0).classes).toStrictEqual([
      { name: "batch", weight: 1, floor: 0, ceiling: 1, inFlight: 0, waiting: 2, progressMs: 0, share: 0.5 },
      { name: "chat", weight: 3, floor: 0, inFlight: 2, waiting: 1, progressMs: 0, share: 1.5 },
      // It was not used yet, so it has no meter.
      { name: "default", weight: 1, floor: 0, inFlight: 0, waiting: 0, share: 0.4 },
    ]);
  });

  test("have the meter of their lines, and the slots and buckets of a class name it unless it is the default", () => {
    const host = new Decider(HOST);
    ask(host, 0, ["chat"]);
    ask(host, 100, ["default"]);
    const { classes, leases, buckets } = stateOf(host, 100);
    expect(classes.find(({ name }) => name === "chat")?.progressMs).toBe(100);
    expect(leases.map((lease) => ["class" in lease, lease.class])).toEqual([
      [true, "chat"],
      [false, undefined],
    ]);
    expect(buckets.map((bucket) => [bucket.bucket, "class" in bucket, bucket.class])).toEqual([
      ["0-0", true, "chat"],
      ["100-0", false, undefined],
    ]);
  });

  test("are none at a host without classes; and a class that was removed is listed while it is used", () => {
    const plain = new Decider({ maxSlotPerHost: 2 });
    ask(plain, 0, ["default"]);
    expect(stateOf(plain, 0).classes).toEqual([]);
    const host = new Decider(HOST);
    ask(host, 0, ["chat", "default", "chat"]);
    host.at(1, [], ["0-0", "0-1", "0-2"], { classes: {} });
    const shown = () => stateOf(host, 1).classes.map(({ name, inFlight, waiting }) => [name, inFlight, waiting]);
    expect(shown()).toEqual([
      ["chat", 1, 1],
      ["default", 1, 0],
    ]);
    for (const { fence } of Array.from(host.book.all("lease")))
      host.at(2, [{ kind: "revoke", fence }], [], { classes: {} });
    host.at(3, [end(host, "0-2")], [], { classes: {} });
    host.at(4, [], [], { classes: {} });
    expect(shown()).toEqual([]);
  });
});

function end(host: Decider, session: string) {
  const { bucket = "", arrivedAt = 0, deadlineAt = 0 } = host.book.get("waiter", session) ?? {};
  return {
    kind: "end",
    session,
    bucket,
    arrivedAt,
    end: "canceled",
    keepUntil: deadlineAt,
    at: host.book.now,
  } as const;
}
