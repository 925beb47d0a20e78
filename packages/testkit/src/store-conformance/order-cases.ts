import { expect, test } from "vitest";
import type { NewHost } from "./describe-slot-store.ts";

/** S7: a batch is decided as a whole, in the host's order. */
export function orderCases(newHost: NewHost): void {
  test("S7: each grant counts before the next: one slot for each bucket before a second for any", async () => {
    const host = newHost({ slots: 3 });
    const statuses = await host.statuses(["a-1", "a-2", "a-3", "b-1", "c-1"]);
    expect(statuses).toEqual(["ACQUIRED", "WAIT", "WAIT", "ACQUIRED", "ACQUIRED"]);
  });

  test("S7: of two buckets with nothing in hand the one that used less is first", async () => {
    const host = newHost({ slots: 1 });
    const first = await host.take("a-1");
    await host.register(["a-2", "b-1"]);
    await host.pass(100);
    await host.release(first.slotToken);
    expect(await host.statuses([host.waiter("a-2", { arrivedAt: 1 }), host.waiter("b-1", { arrivedAt: 2 })])).toEqual([
      "WAIT",
      "ACQUIRED",
    ]);
  });

  test("S7: inside a bucket the oldest is first, whatever its place in the batch", async () => {
    const host = newHost({ slots: 1 });
    const young = host.waiter("a-young", { arrivedAt: 20 });
    const old = host.waiter("a-old", { arrivedAt: 10 });
    expect(await host.statuses([young, old])).toEqual(["WAIT", "ACQUIRED"]);
  });

  test("S7: a bucket back from idle starts at the meter, not at what it never used", async () => {
    const host = newHost({ slots: 1, leaseMs: 5_000 });
    const first = await host.take("a-1");
    await host.pass(100);
    await host.register(["b-1", "a-2"]);
    await host.release(first.slotToken);
    const slot = await host.take(host.waiter("b-1", { arrivedAt: 5 }));
    await host.pass(60);
    await host.release(slot.slotToken);
    // b joined at a's use and has used since; had it joined at nothing it would be first again.
    const contenders = [host.waiter("b-2", { arrivedAt: 1 }), host.waiter("a-2", { arrivedAt: 2 })];
    expect(await host.statuses(contenders)).toEqual(["WAIT", "ACQUIRED"]);
  });

  test("S7: with weights three and one on one slot, the lighter bucket is not starved", async () => {
    const host = newHost({ slots: 1, leaseMs: 5_000 });
    const granted: string[] = [];
    for (let round = 0; round < 8; round++) {
      const heavy = host.waiter(`heavy-${round}`, { weight: 3 });
      const light = host.waiter(`light-${round}`);
      const { verdicts } = await host.try([heavy, light]);
      const at = verdicts.findIndex(({ status }) => status === "ACQUIRED");
      const verdict = verdicts[at];
      if (verdict?.status !== "ACQUIRED") throw new Error("Expected one of them to be granted");
      granted.push(at === 0 ? "heavy" : "light");
      await host.pass(50);
      await host.release(verdict.slot.slotToken);
    }
    expect(granted.filter((name) => name === "light")).toHaveLength(2);
  });

  test("S7: first come, first served where the order says so", async () => {
    const host = newHost({ slots: 1, order: "fifo" });
    await host.release((await host.take("a-1")).slotToken);
    const contenders = [host.waiter("b-1", { arrivedAt: 20 }), host.waiter("a-2", { arrivedAt: 10 })];
    expect(await host.statuses(contenders)).toEqual(["WAIT", "ACQUIRED"]);
  });

  test("S7: a bucket at its limit is skipped, never waited for", async () => {
    const host = newHost({ slots: 2, slotsPerBucket: 1 });
    expect(await host.statuses(["a-1", "a-2", "b-1"])).toEqual(["ACQUIRED", "WAIT", "ACQUIRED"]);
    expect(await host.statuses([host.waiter("a-2"), host.waiter("a-3")])).toEqual(["WAIT", "WAIT"]);
  });

  test("the answer tells what is left and whose account stands where", async () => {
    const host = newHost({ slots: 3 });
    const reply = await host.try(["a-1", "b-1"]);
    expect(reply.free).toBe(1);
    expect(reply.accounts.map(({ bucket, inFlight }) => [bucket, inFlight])).toEqual([
      ["a", 1],
      ["b", 1],
    ]);
  });

  test("one host's limits say nothing about another's", async () => {
    const full = newHost({ slots: 1 });
    const other = newHost({ slots: 1 });
    await full.take("a-1");
    await other.take("a-1");
  });
}
