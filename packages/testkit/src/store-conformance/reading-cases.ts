import type { BookRecord, Head } from "@slotkeeper/queue";
import { describe, expect, it } from "vitest";
import type { NewHost } from "./describe-host-store.ts";
import { accountOf, leaseOf, offerOf, sessionOf, waiterOf } from "./host-under-test.ts";

export function readingCases(newHost: NewHost): void {
  describe("reading", () => {
    it("peek returns the books of known hosts, and changes nothing", async () => {
      const [host, unknown] = [await newHost(), await newHost()];
      const tag = await host.accept({ puts: [accountOf("b", host.head.now)] });
      const books = await host.other.peek([host.host, unknown.host]);
      expect([...books]).toEqual([[host.host, await host.book()]]);
      expect(await host.store.hostKeys()).toContain(host.host);
      expect(await host.store.hostKeys()).not.toContain(unknown.host);
      expect(await host.store.read(host.host, tag)).toMatchObject({ tag, tail: { changes: { puts: [], dels: [] } } });
    });

    it("the time up to which ends may be forgotten is part of the head, and so is its absence", async () => {
      const host = await newHost();
      const forgottenAt = host.head.now - 1_234.5;
      const base = await host.accept({ head: { forgottenAt } });
      expect((await host.book())?.head.forgottenAt).toBe(forgottenAt);
      await host.accept({
        head: { forgottenAt: undefined },
        puts: [sessionOf("a", host.head.now, host.head.now - 7.5)],
      });
      const { tail } = await host.store.read(host.host, base);
      const changes = tail.kind === "changes" ? tail.changes : undefined;
      expect(changes?.head?.forgottenAt).toBeUndefined();
      expect(changes?.puts).toMatchObject([{ endedAt: host.head.now - 7.5 }]);
      expect((await host.book())?.head.forgottenAt).toBeUndefined();
    });

    it("totals use the store's clock: what has ended by time is not counted", async () => {
      const host = await newHost();
      const before = await host.store.totals();
      const now = await host.now();
      const fence = host.head.fence + 2;
      const leases = [leaseOf("a", fence - 1, now), leaseOf("b", fence, now, { endsAt: now + 1_000 })];
      const waiters = [waiterOf("c", now), waiterOf("d", now, { deadlineAt: now + 1_000 })];
      const breaker = { openedAt: now - 3_598_950, code: 503, errors: 0, successes: 0, consecutive: 0 };
      await host.accept({ head: { fence, breaker, slots: 3 }, puts: [...leases, ...waiters], now });
      const diff = async () => {
        const { hosts, slots, inFlight, waiting, open } = await host.store.totals();
        return [hosts - before.hosts, slots - before.slots, inFlight - before.inFlight, waiting - before.waiting, open];
      };
      expect(await diff()).toEqual([1, 3, 2, 2, before.open + 1]);
      await host.pass(1_100);
      expect(await diff()).toEqual([1, 3, 1, 1, before.open]);
    });
  });

  describe("cleanup", () => {
    const IDLE_MS = 90_000;
    const HOUR_MS = 3_600_000;
    const isKept = async (puts: (now: number, fence: number) => BookRecord[], head: (now: number) => Partial<Head>) => {
      const host = await newHost();
      const now = await host.now();
      host.head = { ...host.head, fence: Math.floor(now * 1000) };
      const fence = host.head.fence + 1;
      await host.accept({ head: { fence, ...head(now) }, puts: puts(now, fence), now });
      await host.pass(IDLE_MS + 1);
      expect((await host.store.cleanup({ idleMs: IDLE_MS })).failures).toEqual([]);
      return (await host.store.hostKeys()).includes(host.host);
    };
    const none = () => ({});
    const far = 600_000;

    it.each<[string, boolean, Parameters<typeof isKept>]>([
      ["without users", false, [(now) => [accountOf("b", now), sessionOf("a", now + 1), waiterOf("w", now)], none]],
      ["with a lease that ended", false, [(now, fence) => [leaseOf("a", fence, now)], none]],
      ["with a lapsed offer", false, [(now) => [offerOf("a", now)], none]],
      ["with a lease", true, [(now, fence) => [leaseOf("a", fence, now, { endsAt: now + far })], none]],
      [
        "with a lease that ended, of a session that may return",
        true,
        [(now, fence) => [leaseOf("a", fence, now, { keepUntil: now + far })], none],
      ],
      ["with a session that ended a moment ago", true, [(now) => [sessionOf("a", now + IDLE_MS - 5_000)], none]],
      ["with a waiter", true, [(now) => [waiterOf("a", now, { deadlineAt: now + far })], none]],
      [
        "with a waiter that its instance may still end after its deadline",
        true,
        [(now) => [waiterOf("a", now, { deadlineAt: now + IDLE_MS - 9_000 })], none],
      ],
      [
        "with a waiter that reached its deadline ten seconds ago",
        false,
        [(now) => [waiterOf("a", now, { deadlineAt: now + IDLE_MS - 10_000 })], none],
      ],
      ["with a session to remember", true, [(now) => [sessionOf("a", now + far)], none]],
      [
        "with a session that ended ten minutes ago",
        false,
        [(now) => [sessionOf("a", now + far, now + IDLE_MS - 600_000)], none],
      ],
      [
        "with a session that ended less than ten minutes ago",
        true,
        [(now) => [sessionOf("a", now + far, now + IDLE_MS - 590_000)], none],
      ],
      [
        "with a lease that ended ten minutes ago, of a session that may return",
        false,
        [(now, fence) => [leaseOf("a", fence, now, { endsAt: now + IDLE_MS - 600_000, keepUntil: now + far })], none],
      ],
      ["that has forgotten ends since", true, [() => [], (now) => ({ forgottenAt: now + IDLE_MS - 590_000 })]],
      ["that has forgotten no ends since", false, [() => [], (now) => ({ forgottenAt: now + IDLE_MS - 600_000 })]],
      ["with a cooldown", true, [(now) => [{ kind: "cooldown", key: "b", until: now + far }], none]],
      [
        "with an open breaker",
        true,
        [
          () => [],
          (now) => ({
            breaker: { openedAt: now - HOUR_MS + 2 * IDLE_MS, code: 503, errors: 0, successes: 0, consecutive: 0 },
          }),
        ],
      ],
      [
        "with a breaker that opened an hour ago",
        false,
        [
          () => [],
          (now) => ({ breaker: { openedAt: now - HOUR_MS, code: 503, errors: 0, successes: 0, consecutive: 0 } }),
        ],
      ],
    ])("treats a host %s as in use: %s", async (_, expected, [puts, head]) => {
      expect(await isKept(puts, head)).toBe(expected);
    });

    it("keeps hosts that were used a moment ago, and reports how many were deleted", async () => {
      const [old, fresh] = [await newHost(), await newHost()];
      await old.accept();
      await old.pass(IDLE_MS + 1);
      await fresh.startAfresh();
      await fresh.accept();
      expect((await old.store.cleanup({ idleMs: IDLE_MS })).hosts).toBeGreaterThan(0);
      const keys = await old.store.hostKeys();
      expect([keys.includes(old.host), keys.includes(fresh.host)]).toEqual([false, true]);
      expect(await old.send()).toMatchObject({ isOk: false, reason: "conflict" });
    });
  });
}
