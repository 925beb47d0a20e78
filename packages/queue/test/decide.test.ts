import { Book } from "@slotkeeper/queue/internals";
import { describe, expect, test } from "vitest";
import { arrive, Decider, release, START } from "./decider.ts";

/** Decisions that the comparison with the reference book (`testkit/test/reference.prop.test.ts`) showed to be wrong. */

describe("a decision", () => {
  test("makes no lease from an offer if the limit was lowered since", () => {
    const host = new Decider({ maxSlotPerHost: 2, maxSlotPerIp: -1 });
    host.at(0, [arrive("s1", "a", 0, 9_000), arrive("s2", "b", 0, 9_000)], ["s1"]);
    expect(host.book.size("offer")).toBe(1);
    host.at(10, [], ["s2"], { maxSlotPerHost: 1 });
    expect(host.book.inFlight).toBe(1);
    expect(host.book.get("waiter", "s2")).toBeDefined();
  });

  test("grants a slot as soon as the cooldown of the bucket is over", () => {
    const host = new Decider({ maxSlotPerHost: 2, ipCooldownSeconds: 1 });
    host.at(0, [arrive("s1", "a", 0, 9_000)], ["s1"]);
    host.at(10, [release(host.book, "s1")], []);
    host.at(900, [arrive("s2", "a", 900, 9_000)], ["s2"]);
    expect(host.book.leaseOf("s2")).toBeUndefined();
    host.at(1_010, [], ["s2"]);
    expect(host.book.leaseOf("s2")).toBeDefined();
  });

  test("grants a slot after the cooldown of the bucket, although a key held its waiter back when the decision began", () => {
    const host = new Decider({
      maxSlotPerHost: 5,
      maxSlotPerIp: 1,
      ipCooldownSeconds: 1,
      keys: { tenant: { slots: 2 } },
    });
    const acme = { demand: { keys: { tenant: "acme" } } };
    host.at(0, [arrive("s1", "a", 0, 9_000), arrive("s2", "b", 0, 9_000)], ["s1", "s2"]);
    // `s4` stands behind `s3` at their tenant, and `s3` waits for the slot of its bucket.
    host.at(
      1,
      [
        { ...arrive("s3", "a", 1, 9_000), ...acme },
        { ...arrive("s4", "b", 2, 9_000), ...acme },
      ],
      [],
    );
    host.at(10, [release(host.book, "s2")], []);
    expect(host.book.get("cooldown", "b")).toBeDefined();
    const { notes } = host.at(2_000, [{ kind: "revoke", fence: host.book.leaseOf("s1")?.fence ?? 0 }], ["s3", "s4"]);
    expect(notes.map(({ kind }) => kind)).not.toContain("refused");
    expect([host.book.leaseOf("s3"), host.book.leaseOf("s4")]).not.toContain(undefined);
  });

  test("makes leases from offers in the same order, whatever the order in which a store returned the records", () => {
    const config = { maxSlotPerHost: 5, maxSlotPerIp: -1, collectMs: 500 };
    const host = new Decider(config);
    host.at(0, [arrive("s3", "a", 0, 9_000)], []);
    host.at(1, [arrive("s2", "b", 1, 9_000), arrive("s1", "c", 1, 9_000)], []);
    expect(host.book.size("offer")).toBe(3);
    const { head, records } = host.book.image();
    for (const stored of [records, records.toReversed()]) {
      const other = new Decider(config, Book.of("h", host.book.tag, { head, records: stored }));
      const { notes } = other.at(2, [], ["s1", "s2", "s3"]);
      expect(notes.map((note) => note.kind === "granted" && note.session)).toEqual(["s3", "s1", "s2"]);
    }
  });

  test("ends, although a waiter with an offer loses its place to a younger one of its key", () => {
    const host = new Decider({
      maxSlotPerHost: 3,
      maxSlotPerIp: 1,
      maxWaitersPerHost: 2,
      collectMs: 500,
      keys: { tenant: { slots: 3 } },
    });
    const acme = { demand: { keys: { tenant: "acme" } } };
    host.at(10, [{ ...arrive("s1", "a", 10, 9_000), ...acme }], []);
    expect(host.book.get("offer", "s1")).toBeDefined();
    // It arrived before, and its bucket is at its limit. So `s1` is the youngest of the largest bucket.
    host.at(11, [arrive("s2", "a", 5, 9_000)], []);
    host.at(12, [{ ...arrive("s3", "c", 12, 9_000), ...acme }], ["s3"]);
    expect(host.book.leaseOf("s3")).toBeDefined();
    expect(host.book.get("offer", "s1")).toBeDefined();
  });

  test("grants no second slot to a session whose first call was repeated while its slot ended", () => {
    const host = new Decider({ maxSlotPerHost: 2, smoothReleaseIntervalMs: 100 });
    host.at(0, [arrive("s1", "a", 0, 300), arrive("s2", "b", 0, 300)], ["s1", "s2"]);
    host.at(10, [release(host.book, "s2"), release(host.book, "s1")], []);
    expect(host.book.leaseOf("s1")?.isReleased).toBe(true);
    host.at(20, [arrive("s1", "a", 0, 2_000)], ["s1"]);
    host.at(1_000, [arrive("s1", "a", 0, 2_000)], ["s1"]);
    expect(host.book.get("ending", "s1")).toMatchObject({ end: "released", keepUntil: START + 2_000 });
    expect(host.book.leaseOf("s1")).toBeUndefined();
  });

  test("keeps the end of an earlier session with the same id apart", () => {
    const host = new Decider({ maxSlotPerHost: 1, smoothReleaseIntervalMs: 100, minSlotHoldMs: 200 });
    const at = { arrivedAt: START, keepUntil: START + 300, at: START };
    host.at(0, [arrive("s1", "a", 0, 300), { kind: "end", session: "s1", bucket: "a", end: "timeout", ...at }], []);
    host.at(300, [arrive("s1", "a", 300, 2_000)], ["s1"]);
    const { key: slotToken = "" } = host.book.leaseOf("s1") ?? {};
    host.at(310, [{ kind: "release", slotToken, hitAt: START + 310, status: undefined }], []);
    host.at(320, [arrive("s1", "a", 300, 2_000)], ["s1"]);
    expect(host.book.get("ending", "s1")?.keepUntil).toBe(START + 300);
  });

  test("measures the heat of a host in the same way if a session arrives alone", () => {
    const heat = { hotPendingMin: 2, hotPendingFactor: 0.5, hotAvgWaitMs: 40, coldAvgWaitMs: 5 };
    const host = new Decider({ maxSlotPerHost: 1, maxSlotPerIp: -1, weightedScheduler: { enabled: true, ...heat } });
    const polled = ["s1", "s2", "s3", "s4", "s5"];
    const releaseHeld = () => [...host.book.all("lease")].map(({ session }) => release(host.book, session));
    host.at(0, [arrive("s1", "a", 0, 9_000)], polled);
    host.at(10, [arrive("s2", "a", 10, 9_000), arrive("s3", "b", 10, 9_000)], polled);
    host.at(500, releaseHeld(), polled);
    host.at(510, [arrive("s4", "a", 510, 9_000)], polled);
    host.at(520, releaseHeld(), polled);
    host.at(530, releaseHeld(), polled);
    expect({ isHot: host.book.head.weighted?.isHot, waiters: host.book.size("waiter") }).toEqual({
      isHot: true,
      waiters: 0,
    });
    host.at(540, [arrive("s5", "c", 540, 9_000)], polled, { maxSlotPerHost: 2 });
    expect(host.book.leaseOf("s5")).toBeDefined();
    // It was pending when the heat was measured, and the average wait is still long.
    expect(host.book.head.weighted?.isHot).toBe(true);
  });

  test("forgets the numbers of a bucket one idle time after its last session, whatever other buckets have", () => {
    const host = new Decider({ sessionIdleSeconds: 1, weightedScheduler: { enabled: true } });
    host.at(0, [{ kind: "limits", limits: undefined }], []);
    const account = { kind: "account", weight: 1, weighted: { virtualTime: 1, waitCount: 0 } } as const;
    host.book.put({ ...account, key: "a", usedMs: 500, asOf: START });
    host.book.put({ ...account, key: "b", usedMs: 100, asOf: START + 5_500 });
    host.at(6_000, [{ kind: "report", status: 200 }], []);
    expect(host.book.get("account", "a")?.weighted).toBeUndefined();
    expect(host.book.get("account", "b")?.weighted?.virtualTime).toBe(1);
  });

  test("does not depend on the order in which sessions of the same arrival time joined (DECIDE8)", () => {
    const granted = [
      ["s1", "s2"],
      ["s2", "s1"],
    ].map((sessions) => {
      const host = new Decider({ maxSlotPerHost: 1 });
      host.at(0, [arrive("s0", "z", 0, 9_000)], ["s0"]);
      host.at(
        10,
        sessions.map((session) => arrive(session, session, 10, 9_000)),
        sessions,
      );
      host.at(20, [release(host.book, "s0")], sessions);
      return [...host.book.all("lease")].map(({ session }) => session);
    });
    expect(granted).toEqual([["s1"], ["s1"]]);
  });
});
