import { RESERVED_MS, RESERVES_AFTER } from "@slotkeeper/queue/internals";
import { describe, expect, it } from "vitest";
import type { NewHost } from "./describe-host-store.ts";
import type { HostUnderTest } from "./host-under-test.ts";

/** The slow instance has lost this number of commits in a row, and loses once more. */
async function loseAfter(host: HostUnderTest, conflicts: number): Promise<void> {
  const reply = await host.send({ base: "0.stale", instance: "slow", conflicts });
  expect(reply).toMatchObject({ isOk: false, reason: "conflict" });
}

export function reservationCases(newHost: NewHost): void {
  describe("reservations against starvation", () => {
    it("the third conflict in a row reserves the next commit for the instance", async () => {
      const host = await newHost();
      await host.accept();
      await loseAfter(host, RESERVES_AFTER - 1);
      const refused = await host.send({ instance: "fast" });
      expect(refused).toMatchObject({ isOk: false, reason: "reserved", tag: host.tag });
      await host.accept({ instance: "slow" });
      await host.accept({ instance: "fast" });
    });

    it("fewer conflicts reserve nothing", async () => {
      const host = await newHost();
      await host.accept();
      await loseAfter(host, RESERVES_AFTER - 2);
      await host.accept({ instance: "fast" });
    });

    it(`a reservation lasts ${RESERVED_MS} ms, and another instance does not take it over`, async () => {
      const host = await newHost();
      await host.accept();
      await loseAfter(host, RESERVES_AFTER);
      await host.pass(RESERVED_MS - 5);
      const second = await host.send({ base: "0.stale", instance: "third", conflicts: 9 });
      expect(second).toMatchObject({ isOk: false, reason: "reserved" });
      await host.pass(10);
      await host.accept({ instance: "fast" });
    });

    it("an accepted commit that is sent again is answered ok while another instance has the reservation", async () => {
      const host = await newHost();
      await host.accept();
      const commit = await host.commitOf({ instance: "fast" });
      await host.store.commit(commit);
      host.tag = commit.tag;
      await loseAfter(host, RESERVES_AFTER);
      expect(await host.store.commit(commit)).toMatchObject({ isOk: true });
    });
  });
}
