import { checkHistory, History, type SessionRecord } from "@slotkeeper/testkit/chaos";
import { expect, test } from "vitest";

const LIMITS = { slots: 2, slotsPerBucket: 1 };

interface Planted {
  readonly host?: string;
  readonly bucket: string;
  readonly askedAt?: number;
  readonly from: number;
  readonly until: number;
  readonly fence: number;
  readonly slotToken?: string;
}

let count = 0;

/** A session that was granted and released its slot, as a client records it. */
function session({ host = "a.example", bucket, askedAt, from, until, fence, slotToken }: Planted): SessionRecord {
  return {
    ...new History().ask(host, bucket),
    id: `s${count++}`,
    askedAt: askedAt ?? from - 1,
    deliveries: [{ slotToken: slotToken ?? `slot-${fence}`, fence, at: from }],
    use: { from, until },
    releasedAt: until,
  };
}

const rulesOf = (...sessions: SessionRecord[]) => checkHistory({ sessions }, LIMITS).map(({ rule }) => rule);

test("a history of ordinary hand-overs breaks no rule", () => {
  expect(
    rulesOf(
      session({ bucket: "a", from: 10, until: 20, fence: 1 }),
      session({ bucket: "b", from: 11, until: 21, fence: 2 }),
      // At the exact time of the release, and at another host with its own fences.
      session({ bucket: "c", from: 20, until: 30, fence: 3 }),
      session({ host: "b.example", bucket: "c", from: 20, until: 30, fence: 1, slotToken: "other" }),
    ),
  ).toEqual([]);
});

test("HIST1: finds one slot too many in use, at a host and in a bucket", () => {
  const held = [
    session({ bucket: "a", from: 10, until: 20, fence: 1 }),
    session({ bucket: "b", from: 11, until: 21, fence: 2 }),
  ];
  expect(rulesOf(...held, session({ bucket: "c", from: 19.9, until: 30, fence: 3 }))).toEqual(["limit"]);
  expect(rulesOf(held[0] as SessionRecord, session({ bucket: "a", from: 15, until: 30, fence: 3 }))).toEqual([
    "bucket-limit",
  ]);
});

test("HIST1: a client that uses its slot after its lease ended breaks the limit once the slot is granted again", () => {
  const overstaying = session({ bucket: "a", from: 10, until: Number.POSITIVE_INFINITY, fence: 1 });
  const others = [
    session({ bucket: "b", from: 40, until: 50, fence: 2 }),
    session({ bucket: "c", from: 41, until: 50, fence: 3 }),
  ];
  expect(rulesOf(overstaying, ...others)).toEqual(["limit"]);
});

test("HIST2: finds a fence that does not grow or is issued twice; concurrent grants may arrive in any order", () => {
  const first = session({ bucket: "a", from: 10, until: 12, fence: 5 });
  expect(rulesOf(first, session({ bucket: "b", askedAt: 11, from: 13, until: 14, fence: 4 }))).toEqual(["fence"]);
  expect(rulesOf(first, session({ bucket: "b", askedAt: 9, from: 13, until: 14, fence: 4 }))).toEqual([]);
  expect(rulesOf(first, session({ bucket: "b", askedAt: 9, from: 13, until: 14, fence: 5, slotToken: "x" }))).toEqual([
    "fence",
  ]);
});

test("HIST3: finds a slot granted to two sessions, and a session with two slots; the same grant twice is allowed", () => {
  const one = session({ bucket: "a", from: 10, until: 12, fence: 1 });
  one.deliveries.push({ slotToken: "slot-1", fence: 1, at: 11 });
  expect(rulesOf(one)).toEqual([]);
  expect(rulesOf(one, session({ bucket: "b", from: 13, until: 14, fence: 2, slotToken: "slot-1" }))).toEqual([
    "ownership",
  ]);
  one.deliveries.push({ slotToken: "slot-9", fence: 9, at: 11 });
  expect(rulesOf(one)).toEqual(["ownership"]);
});

test("HIST4: finds a session that ends without a slot, one without an answer, and a lost lease; a dead client loses nothing", () => {
  const ask = () => new History().ask("a.example", "a");
  expect(rulesOf({ ...ask(), end: { result: "timeout", at: 5 } })).toEqual(["lost-session"]);
  expect(rulesOf(ask())).toEqual(["lost-session"]);
  const granted = session({ bucket: "a", from: 10, until: 12, fence: 1 });
  expect(rulesOf({ ...granted, lostLeaseAt: 12 })).toEqual(["lost-lease"]);
  expect(rulesOf({ ...granted, lostLeaseAt: 12, diedAt: 12 }, { ...ask(), diedAt: 3 })).toEqual([]);
});
