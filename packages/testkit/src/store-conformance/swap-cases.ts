import type { BookRecord, CommitReply } from "@slotkeeper/queue";
import { describe, expect, it } from "vitest";
import type { NewHost } from "./describe-host-store.ts";
import { accountOf, type HostUnderTest, leaseOf, offerOf, sessionOf, waiterOf } from "./host-under-test.ts";

/** Records with numbers that lose digits in a careless column or codec. */
function everyRecord(now: number, fence: number): BookRecord[] {
  const breaker = { windowMs: 60_000, protectHttpCodes: [429, 503], errorRatioPercent: 20, minSamples: 8 };
  const more = {
    fastErrorRatioPercent: 50,
    fastMinSamples: 4,
    consecutiveErrors: 4,
    openMs: 60_000,
    halfOpenProbes: 1,
  };
  const limits = { slots: 2, slotsPerBucket: 1, waiters: Number.POSITIVE_INFINITY, waitersPerBucket: 3 };
  const times = { leaseMs: 30_000, maxHoldMs: 3_600_000, cooldownMs: 0, minHoldMs: 0, smoothMs: 33.3 };
  const policy = { ...limits, ...times, order: "slot-seconds" as const, breaker: { ...breaker, ...more } };
  return [
    leaseOf("é'\"\\ %", fence, now + 0.1, { endsAt: now + 30_000.7, isReleased: true, isProbe: true, bucket: "" }),
    offerOf("o", now, now + 50.25),
    waiterOf("w", now, { awayAt: now - 0.3, weight: 2.5 }),
    sessionOf("gone", now + 60_000),
    { kind: "ending", key: "t", end: "throttled", keepUntil: now, code: 503, retryAt: now + 1.5 },
    { ...accountOf("b", now, 0.1 + 0.2), refusedAt: now + 1, weighted: { virtualTime: 1 / 3, waitCount: 3 } },
    { kind: "cooldown", key: "b", until: now + 500.125 },
    { kind: "absence", key: "two", missedAt: now },
    { kind: "limits", key: "", policy, loadedAt: now, live: { slots: 9 } },
  ];
}

const byName = (a: BookRecord, b: BookRecord) => `${a.kind} ${a.key}`.localeCompare(`${b.kind} ${b.key}`);

export function swapCases(newHost: NewHost): void {
  describe("compare and swap", () => {
    it("P1: the first commit of a host needs no read: its base is undefined", async () => {
      const host = await newHost();
      expect(await host.store.read(host.host, undefined)).toMatchObject({ tail: { kind: "book" } });
      expect((await host.store.read(host.host, undefined)).tag).toBeUndefined();
      const tag = await host.accept({ puts: [accountOf("b", host.head.now)] });
      const { tag: found, tail } = await host.other.read(host.host, undefined);
      expect(found).toBe(tag);
      expect(tail).toEqual({ kind: "book", book: { head: host.head, records: [accountOf("b", host.head.now)] } });
    });

    it("P1: keeps every kind of record and the head exactly", async () => {
      const host = await newHost();
      const now = await host.now();
      const records = everyRecord(now, host.head.fence + 1);
      const breaker = { openedAt: now - 0.5, code: 503, errors: 1, successes: 2, consecutive: 3 };
      const weighted = { isHot: true, triedAt: now, turnAt: 1e-7 };
      const more = { lastEndAt: now + 0.7, capacity: 2, idleSince: now, weighted };
      await host.accept({ head: { fence: host.head.fence + 1, breaker, ...more }, puts: records });
      const book = await host.book(host.other);
      expect(book?.head).toEqual(host.head);
      expect([...(book?.records ?? [])].sort(byName)).toEqual(records.sort(byName));
    });

    it("P1: puts replace and dels remove every kind of record", async () => {
      const host = await newHost();
      const now = await host.now();
      const records = everyRecord(now, host.head.fence + 1);
      await host.accept({ head: { fence: host.head.fence + 1 }, puts: records });
      const [lease] = records as [ReturnType<typeof leaseOf>];
      const replaced = [{ ...lease, endsAt: now + 1 }, accountOf("b", now, 7)];
      await host.accept({
        puts: replaced,
        dels: [
          ["waiter", "s-w"],
          ["ending", "never there"],
        ],
      });
      const kept = records.filter(({ kind }) => kind !== "waiter" && kind !== "lease" && kind !== "account");
      expect([...((await host.book())?.records ?? [])].sort(byName)).toEqual([...kept, ...replaced].sort(byName));
      await host.accept({ dels: [...kept, ...replaced].map(({ kind, key }) => [kind, key]) });
      expect(await host.names()).toEqual([]);
    });

    it("P1: refuses a commit on a different tag as a conflict, keeps nothing of it, and returns what changed", async () => {
      const host = await newHost();
      const base = await host.accept();
      const [second, third] = [accountOf("second", host.head.now), accountOf("third", host.head.now)];
      await host.accept({ puts: [second] });
      const tag = await host.accept({ puts: [third], dels: [["account", "second"]], store: host.other });
      const late = await host.send({ base, puts: [accountOf("late", host.head.now)] });
      expect(late).toMatchObject({ isOk: false, reason: "conflict", tag });
      const changes = { head: host.head, puts: [third], dels: [["account", "second"]] };
      expect(late.isOk ? undefined : late.tail).toEqual({ kind: "changes", changes });
      expect(await host.names()).toEqual(["account third"]);
    });

    it("P1: of two first commits one is accepted, and the other gets the book", async () => {
      const host = await newHost();
      await host.accept({ puts: [accountOf("first", host.head.now)] });
      const reply = await host.send({ base: undefined, puts: [accountOf("second", host.head.now)] });
      expect(reply).toMatchObject({ isOk: false, reason: "conflict", tag: host.tag, tail: { kind: "book" } });
      expect(await host.names()).toEqual(["account first"]);
    });

    it("P1: of many commits on one base exactly one is accepted", async () => {
      for (const isKnown of [false, true]) {
        const host = await newHost();
        if (isKnown) await host.accept();
        const commits = await Promise.all(
          Array.from({ length: 8 }, (_, at) => host.commitOf({ puts: [accountOf(`b${at}`, host.head.now)] })),
        );
        const replies: CommitReply[] = await Promise.all(
          commits.map(async (commit, at) => (at % 2 === 0 ? host.store : host.other).commit(commit)),
        );
        expect(replies.filter(({ isOk }) => isOk)).toHaveLength(1);
        expect(await host.names()).toEqual([`account b${replies.findIndex(({ isOk }) => isOk)}`]);
      }
    });

    it("P1: a commit with a base on an unknown host is a conflict without a book", async () => {
      const host = await newHost();
      const reply = await host.send({ base: "7.gone" });
      expect(reply).toMatchObject({ isOk: false, reason: "conflict", tail: { kind: "book" } });
      expect(reply.isOk ? undefined : [reply.tag, reply.tail]).toEqual([undefined, { kind: "book", book: undefined }]);
      expect(await host.store.hostKeys()).not.toContain(host.host);
    });

    it("P1: a commit without a head forgets the host with every record", async () => {
      const host = await newHost();
      await host.accept({
        head: { fence: host.head.fence + 1 },
        puts: everyRecord(host.head.now, host.head.fence + 1),
      });
      const old = host.tag as string;
      await host.forget();
      expect(await host.book()).toBeUndefined();
      expect(await host.store.hostKeys()).not.toContain(host.host);
      expect(await host.send({ base: old })).toMatchObject({ isOk: false, reason: "conflict" });
      await host.pass(10);
      await host.startAfresh();
      await host.accept();
      expect(await host.names()).toEqual([]);
    });

    it("P1, P7: of commits that are sent at the same time, each has its own outcome", async () => {
      const hosts = await Promise.all(Array.from({ length: 20 }, newHost));
      const [stale, full, ...others] = hosts as [HostUnderTest, HostUnderTest, ...HostUnderTest[]];
      await stale.accept();
      await full.grant("a", "b");
      const more = { head: { fence: full.head.fence + 1 }, puts: [leaseOf("c", full.head.fence + 1, full.head.now)] };
      const replies = await Promise.all([
        stale.send({ base: "1.stale" }),
        full.send(more),
        ...others.map((host) => host.send({ puts: [accountOf(host.host, host.head.now, 1)] })),
      ]);
      expect(replies[0]).toMatchObject({ isOk: false, reason: "conflict", tag: stale.tag });
      expect(replies[1]).toMatchObject({ isOk: false, reason: "slots", tag: full.tag });
      expect(replies.slice(2)).toEqual(others.map(() => expect.objectContaining({ isOk: true })));
      for (const host of others) expect(await host.names()).toEqual([`account ${host.host}`]);
      expect(await full.names()).toEqual(["lease slot_a", "lease slot_b"]);
    });

    it("P7: hosts are independent of each other", async () => {
      const [one, two] = [await newHost(), await newHost()];
      await one.grant("a", "b");
      await two.grant("a", "b");
      await one.accept({ dels: [["lease", "slot_a"]] });
      expect(await two.names()).toEqual(["lease slot_a", "lease slot_b"]);
    });
  });
}
