import type { Waiter } from "@slotkeeper/queue";
import { expect, test } from "vitest";
import type { NewHost } from "./describe-slot-store.ts";

/** S4, S8: a session is granted once, ends once, and every call may be repeated. */
export function sessionCases(newHost: NewHost): void {
  test("S4: trying again after a lost answer gives the same slot, to any instance", async () => {
    const host = newHost({ slots: 2 });
    const waiter = host.waiter("a-1");
    const slot = await host.take(waiter);
    const again = await host.take(waiter);
    const elsewhere = await host.register([waiter], "two");
    expect(again).toMatchObject({ slotToken: slot.slotToken, fence: slot.fence });
    expect(elsewhere.verdicts[0]).toMatchObject({ status: "ACQUIRED", slot: { slotToken: slot.slotToken } });
    expect((await host.try(["b-1"])).free).toBe(0);
  });

  test("S4: a session whose slot is over is granted nothing more", async () => {
    const host = newHost({ slots: 1 });
    const waiter = host.waiter("a-1");
    await host.release((await host.take(waiter)).slotToken);
    expect((await host.try([waiter])).verdicts).toEqual([{ status: "ENDED", end: "released" }]);
  });

  test.each(["canceled", "timeout", "throttled"] as const)(
    "S4: a session that ended %s is granted nothing",
    async (end) => {
      const host = newHost({ slots: 1 });
      const waiter = host.waiter("a-1");
      await host.withdraw("a-1", end);
      expect((await host.try([waiter])).verdicts).toEqual([{ status: "ENDED", end }]);
      expect((await host.register([waiter], "two")).verdicts).toEqual([{ status: "ENDED", end }]);
    },
  );

  test("a named semaphore has the capacity its first live user asked for; who asks for another is refused and leaves nothing", async () => {
    const host = newHost({ slots: 5 });
    host.isSemaphore = true;
    const { slotToken } = await host.take(host.waiter("a-1", { limit: 2 }));
    const [fits, other, whatever] = ["b-1", "c-1", "d-1"].map((name, at) => host.waiter(name, { limit: [2, 3][at] }));
    const reply = await host.try([fits as Waiter, other as Waiter, whatever as Waiter]);
    expect(reply.verdicts).toMatchObject([
      { status: "ACQUIRED" },
      { status: "CAPACITY_MISMATCH", capacity: 2 },
      { status: "WAIT" },
    ]);
    await host.withdraw("d-1", "canceled");
    await host.release(slotToken);
    await host.withdraw("b-1", "canceled");
    expect(await host.statuses([host.waiter("e-1", { limit: 3 })])).toEqual(["ACQUIRED"]);
  });

  test("S8: withdrawing gives back the slot that was granted meanwhile", async () => {
    const host = newHost({ slots: 1 });
    await host.take("a-1");
    await host.withdraw("a-1", "timeout");
    await host.withdraw("a-1", "timeout");
    await host.take("b-1");
  });

  test("only the client's own word ends a session that another instance has", async () => {
    const host = newHost({ slots: 1 });
    const waiter = host.waiter("a-1");
    await host.take("z-1");
    await host.register([waiter], "one");
    await host.register([waiter], "two");
    await host.withdraw("a-1", "timeout", "one");
    expect((await host.register([waiter], "two")).verdicts[0]).toMatchObject({ status: "WAIT" });
    await host.withdraw("a-1", "canceled", "one");
    expect((await host.register([waiter], "two")).verdicts[0]).toMatchObject({ status: "ENDED" });
  });

  test("an uncollected slot goes back and the session may be granted again", async () => {
    const host = newHost({ slots: 1, cooldownMs: 500, minHoldMs: 500 });
    const waiter = host.waiter("a-1");
    const { slotToken } = await host.take(waiter);
    expect(await host.release(slotToken, { uncollectedBy: "one" })).toMatchObject({ isReleased: true, endsInMs: 0 });
    const again = await host.take(waiter);
    expect(again.slotToken).not.toBe(slotToken);
  });

  test("a slot that another instance was told of is not uncollected for anybody", async () => {
    const host = newHost({ slots: 1 });
    const waiter = host.waiter("a-1");
    const { slotToken } = await host.take(waiter, "one");
    await host.register([waiter], "two");
    expect(await host.release(slotToken, { uncollectedBy: "one" })).toEqual({ isReleased: false });
    expect(await host.release(slotToken, { uncollectedBy: "two" })).toEqual({ isReleased: false });
    expect(await host.statuses(["b-1"])).toEqual(["WAIT"]);
  });

  test("cleanup takes away what time has ended, every time it runs", async () => {
    const host = newHost({ slots: 1, leaseMs: 100, cooldownMs: 100 });
    for (let round = 0; round < 2; round++) {
      await host.take(`a-${round}`);
      await host.pass(220);
      const reply = await host.store.cleanup({ waiterTtlMs: 20_000 });
      expect(reply.slots).toBeGreaterThanOrEqual(1);
      expect(reply.failures).toEqual([]);
    }
  });
}
