import { type AccountRecord, newHead } from "@slotkeeper/queue";
import { Book } from "@slotkeeper/queue/internals";
import { describe, expect, test } from "vitest";
import { type Arrival, arrive, Decider, release, START } from "./decider.ts";

/** When the accounts of idle buckets are forgotten (USE4 of `use.ts`), to the millisecond. */

const LONG_MS = 900_000;
const HOST = { maxSlotPerIp: -1, zombieTimeoutSeconds: 900, sessionIdleSeconds: 60 } as const;

function account(key: string, numbers: Partial<AccountRecord>): AccountRecord {
  return { kind: "account", key, weight: 1, usedMs: 0, asOf: START, ...numbers };
}

/** A host whose meter advances by one each millisecond, and that has these accounts of idle buckets. */
function hostWith(accounts: readonly AccountRecord[]): Decider {
  const host = new Decider(HOST, Book.of("h", "1.x", { head: newHead(START, 0), records: accounts }));
  host.at(0, [arrive("running", "running", 0, LONG_MS)], ["running"]);
  return host;
}

/** The idle buckets that have an account after a decision that changes something. */
function keptAt(host: Decider, ms: number): string[] {
  host.at(ms, [{ kind: "limits", limits: { slots: 5 + (ms % 2) } }], ["running"]);
  const keys = Array.from(host.book.all("account"), ({ key }) => key);
  return keys.filter((key) => key !== "running").sort();
}

describe("an idle bucket", () => {
  test("is forgotten as soon as the meter has passed its use per weight, whatever others have", () => {
    const accounts = [
      account("a", { usedMs: 4_000, weight: 4 }),
      account("b", { usedMs: 500 }),
      account("c", { usedMs: 4_000, weight: 2 }),
      account("d", { usedMs: 1_500, weight: 0.5 }),
      account("e", { usedMs: 1_500 }),
    ];
    for (const stored of [accounts, accounts.toReversed()]) {
      const host = hostWith(stored);
      expect(keptAt(host, 498)).toEqual(["a", "b", "c", "d", "e"]);
      expect(keptAt(host, 500)).toEqual(["a", "c", "d", "e"]);
      expect(keptAt(host, 999)).toEqual(["a", "c", "d", "e"]);
      expect(keptAt(host, 1_000)).toEqual(["c", "d", "e"]);
      expect(keptAt(host, 1_500)).toEqual(["c", "d"]);
      expect(keptAt(host, 1_999)).toEqual(["c", "d"]);
      expect(keptAt(host, 2_000)).toEqual(["d"]);
      expect(keptAt(host, 3_001)).toEqual([]);
    }
  });

  test("that was refused, or has a charge, is forgotten after the idle period, the longest idle first", () => {
    const accounts = [
      account("a", { asOf: START - 20_000, refusedAt: START - 20_000 }),
      account("b", { asOf: START - 50_000, charged: 3 }),
      account("c", { asOf: START - 10_000, refusedAt: START - 90_000 }),
      account("d", { asOf: START - 30_000, charged: 9 }),
    ];
    for (const stored of [accounts, accounts.toReversed()]) {
      const host = hostWith(stored);
      expect(keptAt(host, 9_999)).toEqual(["a", "b", "c", "d"]);
      expect(keptAt(host, 10_000)).toEqual(["a", "c", "d"]);
      expect(keptAt(host, 29_999)).toEqual(["a", "c", "d"]);
      expect(keptAt(host, 30_000)).toEqual(["a", "c"]);
      expect(keptAt(host, 40_001)).toEqual(["c"]);
      expect(keptAt(host, 50_000)).toEqual([]);
    }
  });

  test("that is ahead of the meter keeps its use when its other numbers are forgotten", () => {
    const host = hostWith([account("a", { usedMs: 70_000, refusedAt: START })]);
    expect(keptAt(host, 60_000)).toEqual(["a"]);
    expect(host.book.get("account", "a")).toMatchObject({ usedMs: 70_000, refusedAt: undefined });
    expect(keptAt(host, 69_998)).toEqual(["a"]);
    expect(keptAt(host, 70_001)).toEqual([]);
  });
});

describe("a bucket", () => {
  test("starts at the meter although its account has been charged at the same time", () => {
    const head = { ...newHead(START, 0), progress: 1_000 };
    const records = [account("a", { usedMs: 10, refusedAt: START })];
    const host = new Decider(HOST, Book.of("h", "1.x", { head, records }));
    host.at(0, [arrive("s", "a", 0, LONG_MS)], []);
    expect(host.book.get("account", "a")?.usedMs).toBe(1_000);
  });

  test("has the weight of its newest request, also if nothing was used yet", () => {
    const host = new Decider(HOST);
    host.at(0, [arrive("s1", "a", 0, LONG_MS), { ...arrive("s2", "a", 0, LONG_MS), weight: 3 }], []);
    expect(host.book.get("account", "a")?.weight).toBe(3);
  });

  const BY_BUDGET = { order: "budget:tokens", budgets: { tokens: { limit: 1e9, perSeconds: 1 } } } as const;
  const ask = (session: string, ms: number, weight: number): Arrival => ({
    ...arrive(session, "a", ms, LONG_MS),
    weight,
    demand: { cost: { tokens: 40 } },
  });

  test("that a direct SQL caller gave a slot is not charged for the time before it had an account", () => {
    const lease = {
      kind: "lease",
      key: "slot_h.x",
      fence: 1,
      session: "s",
      bucket: "a",
      instance: "",
      width: 1,
    } as const;
    const times = { grantedAt: START, endsAt: START + 5_000, keepUntil: START + 5_000 };
    const records = [{ ...lease, ...times, isReleased: false, isProbe: false }];
    const host = new Decider(HOST, Book.of("h", "1.x", { head: newHead(START, 0), records }));
    host.at(6_000, [{ kind: "breaker", isOpen: true }], []);
    expect([host.book.inFlight, host.book.size("account")]).toEqual([0, 0]);
  });

  test("keeps its charge per weight when its weight changes", () => {
    const host = new Decider({ ...HOST, ...BY_BUDGET });
    host.at(0, [ask("s1", 0, 1)], ["s1"]);
    expect(host.book.get("account", "a")).toMatchObject({ weight: 1, charged: 40 });
    host.at(10, [ask("s2", 10, 4)], []);
    expect(host.book.get("account", "a")).toMatchObject({ weight: 4, charged: 4 * 40 + 40 });
  });

  test("has no charge, and joins at none, after the order was changed and changed back (CHARGED3)", () => {
    const host = new Decider({ ...HOST, ...BY_BUDGET });
    host.at(0, [ask("s1", 0, 1)], ["s1"]);
    host.at(10, [ask("s2", 10, 1)], ["s2"]);
    expect(host.book.head.chargeLevel).toBe(40);
    host.at(20, [], [], { order: "slot-seconds" });
    expect(host.book.head.chargeLevel).toBeUndefined();
    host.at(30, [], []);
    host.at(40, [{ ...ask("s3", 40, 1), bucket: "b" }], ["s3"]);
    expect(host.book.get("account", "a")?.charged).toBeUndefined();
    expect(host.book.get("account", "b")?.charged).toBe(40);
  });
});

describe("a class without slots and waiters", () => {
  const ask = (session: string, bucket: string, name: string, ms: number): Arrival => ({
    ...arrive(session, bucket, ms, LONG_MS),
    demand: { class: name },
  });

  test("is kept with its meter while one of its buckets is ahead, so that another one is next when both return", () => {
    const host = new Decider({ ...HOST, maxSlotPerHost: 2, classes: { chat: {}, batch: {} } });
    const polled = ["x1", "x2", "x3", "y1", "y2", "z1", "z2"];
    host.at(0, [ask("x1", "x", "chat", 0), ask("x2", "x", "chat", 0)], polled);
    host.at(1, [ask("y1", "y", "chat", 1)], polled);
    // For ten seconds `x` has both slots, although `y` waits.
    const [arrivedAt, keepUntil, at] = [START + 1, START + LONG_MS, START + 10_001];
    host.at(10_001, [{ kind: "end", session: "y1", bucket: "y", arrivedAt, end: "canceled", keepUntil, at }], polled);
    host.at(10_001, [release(host.book, "x1"), release(host.book, "x2")], polled);
    expect(host.book.head.classes).toMatchObject({ chat: { progress: 10_002 } });
    host.at(11_000, [ask("z1", "z", "batch", 11_000), ask("z2", "z", "batch", 11_000)], polled);
    host.at(12_000, [ask("x3", "x", "chat", 12_000)], polled);
    host.at(12_001, [ask("y2", "y", "chat", 12_001)], polled);
    host.at(12_002, [release(host.book, "z1")], polled);
    expect([host.book.leaseOf("x3"), host.book.leaseOf("y2")].map((lease) => lease !== undefined)).toEqual([
      false,
      true,
    ]);
  });

  test("is forgotten as soon as the meter has passed its use per weight", () => {
    const host = new Decider({ ...HOST, maxSlotPerHost: 2, classes: { chat: { weight: 2 }, batch: {} } });
    const polled = ["x1", "x2", "z1"];
    const names = () => Object.keys(host.book.head.classes ?? {}).sort();
    host.at(0, [ask("x1", "x", "batch", 0), ask("x2", "x", "batch", 0)], polled);
    host.at(1, [ask("z1", "z", "chat", 1)], polled);
    // `batch` has both slots for three seconds: 6,002 ms of slot time. The meter is at 2,002 ms then.
    host.at(3_001, [release(host.book, "x1"), release(host.book, "x2")], polled);
    expect(names()).toEqual(["batch", "chat"]);
    // `chat` alone moves the meter by a half each millisecond.
    host.at(10_999, [{ kind: "limits", limits: { slots: 3 } }], polled);
    expect(names()).toEqual(["batch", "chat"]);
    host.at(11_001, [{ kind: "limits", limits: { slots: 4 } }], polled);
    expect(names()).toEqual(["chat"]);
    host.at(12_000, [release(host.book, "z1")], polled);
    expect(names()).toEqual([]);
  });
});
