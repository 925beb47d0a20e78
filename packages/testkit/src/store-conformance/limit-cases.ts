import type { BookRecord, Head } from "@slotkeeper/queue";
import { describe, expect, it } from "vitest";
import type { NewHost } from "./describe-host-store.ts";
import { firstFence, type HostUnderTest, leaseOf, offerOf } from "./host-under-test.ts";

/** Sends records that must be refused, and checks that nothing of the commit was stored. */
async function expectRefused(
  host: HostUnderTest,
  puts: readonly BookRecord[],
  head: Partial<Head> = {},
): Promise<void> {
  const before = [await host.names(), (await host.store.read(host.host, undefined)).tag];
  const fence = host.head.fence + 10;
  const reply = await host.send({ head: { fence, ...head }, puts });
  expect(reply).toMatchObject({ isOk: false, reason: "slots", tag: host.tag });
  expect([await host.names(), (await host.store.read(host.host, undefined)).tag]).toEqual(before);
}

export function limitCases(newHost: NewHost): void {
  describe("limits and fences", () => {
    it("P2: no commit adds a lease beyond the head's slots", async () => {
      const host = await newHost();
      await host.grant("a", "b");
      await expectRefused(host, [leaseOf("c", host.head.fence + 1, await host.now())]);
      const other = await newHost();
      await expectRefused(
        other,
        ["a", "b", "c"].map((name, at) => leaseOf(name, other.head.fence + 1 + at, other.head.now)),
      );
    });

    it("P2: offers count as slots, and are refused as well", async () => {
      const host = await newHost();
      await host.grant("a");
      const now = await host.now();
      await host.accept({ puts: [offerOf("b", now)] });
      await expectRefused(host, [offerOf("c", now)]);
      await expectRefused(host, [leaseOf("c", host.head.fence + 1, now)]);
      await host.accept({ puts: [offerOf("b", now, now + 51)] });
    });

    it("P2: an offer becomes a lease, and a release and a grant are one commit, while all slots are taken", async () => {
      const host = await newHost();
      await host.grant("a");
      const now = await host.now();
      await host.accept({ puts: [offerOf("b", now)] });
      const fence = host.head.fence + 1;
      await host.accept({ head: { fence }, puts: [leaseOf("b", fence, now)], dels: [["offer", "s-b"]] });
      await host.accept({
        head: { fence: fence + 1 },
        puts: [leaseOf("c", fence + 1, now)],
        dels: [["lease", "slot_a"]],
      });
      expect(await host.names()).toEqual(["lease slot_b", "lease slot_c"]);
    });

    it("P2: a wide lease and a wide offer occupy as many slots as their width, until they end", async () => {
      const host = await newHost();
      const now = await host.now();
      const fence = host.head.fence + 1;
      await host.accept({ head: { slots: 4, fence }, puts: [leaseOf("a", fence, now, { width: 2 })] });
      await expectRefused(host, [leaseOf("b", fence + 1, now, { width: 3 })]);
      await expectRefused(host, [{ ...offerOf("b", now), width: 3 }]);
      await host.accept({ puts: [{ ...offerOf("b", now), width: 2 }] });
      await expectRefused(host, [leaseOf("c", fence + 1, now)]);
      expect((await host.book())?.records.find(({ kind }) => kind === "lease")).toMatchObject({ width: 2 });
      // The end of both and a grant of all slots are one commit.
      await host.accept({
        head: { fence: fence + 1 },
        puts: [leaseOf("c", fence + 1, now, { width: 4 })],
        dels: [
          ["lease", "slot_a"],
          ["offer", "s-b"],
        ],
      });
      await expectRefused(host, [leaseOf("d", fence + 2, now)]);
      await host.pass(31_000);
      await host.accept({
        head: { fence: fence + 2 },
        puts: [leaseOf("e", fence + 2, await host.now(), { width: 4 })],
      });
    });

    it("P2: leases and offers that have ended occupy no slot", async () => {
      const host = await newHost();
      await host.grant("a");
      await host.accept({ puts: [offerOf("b", await host.now())] });
      // The time of a new host may be a little ahead of the clock, because of the fences of forgotten hosts.
      await host.pass(31_000);
      const now = await host.now();
      const fence = host.head.fence + 2;
      await host.accept({ head: { fence }, puts: [leaseOf("c", fence - 1, now), leaseOf("d", fence, now)] });
    });

    it("P2: above a lowered limit, an offer that replaces another is refused", async () => {
      const host = await newHost();
      await host.grant("a");
      const now = await host.now();
      await host.accept({ puts: [offerOf("b", now)] });
      await host.accept({ head: { slots: 1 } });
      const exchange = { puts: [offerOf("c", now)], dels: [["offer", "s-b"]] as const };
      expect(await host.send(exchange)).toMatchObject({ isOk: false, reason: "slots", tag: host.tag });
      expect(await host.names()).toEqual(["lease slot_a", "offer s-b"]);
      await host.accept({ dels: exchange.dels });
    });

    it("P2: a lowered limit refuses no release and no renewal, only new leases and offers", async () => {
      const host = await newHost();
      const [a, b] = await host.grant("a", "b");
      await host.accept({ head: { slots: 1 } });
      await host.accept({ puts: [{ ...(a as BookRecord), endsAt: host.head.now + 40_000 } as BookRecord] });
      await expectRefused(host, [leaseOf("c", host.head.fence + 1, host.head.now)]);
      await host.accept({ dels: [["lease", b?.key ?? ""]] });
      await expectRefused(host, [leaseOf("c", host.head.fence + 1, host.head.now)]);
    });

    it("P3: a new lease has a fence above all earlier ones, and the head's fence never falls", async () => {
      const host = await newHost();
      await host.grant("a");
      await expectRefused(host, [leaseOf("b", host.head.fence, host.head.now)]);
      await expectRefused(host, [], { fence: host.head.fence - 1 });
      await host.accept({ dels: [["lease", "slot_a"]] });
      await expectRefused(host, [leaseOf("b", host.head.fence, host.head.now)]);
      await host.grant("b");
    });

    it("P3: fences grow even if the host was forgotten and the clock was set back", async () => {
      const host = await newHost();
      await host.grant("a");
      const { fence } = host.head;
      await host.forget();
      await host.pass(-3_600_000);
      const reused = leaseOf("b", fence, await host.now());
      expect(await host.send({ head: { fence }, puts: [reused] })).toMatchObject({ isOk: false });
      const reply = await host.send({ head: { fence }, puts: [reused], now: reused.grantedAt - 3_600_000 });
      if (reply.isOk) throw new Error("Expected the commit to be refused");
      // The reply contains the value from which fences start.
      expect(firstFence(reply)).toBeGreaterThanOrEqual(fence);
      await host.startAfresh();
      await host.grant("b");
      expect(host.head.fence).toBeGreaterThan(fence);
      await host.pass(3_600_000);
    });
  });
}
