import { MemoryStore, resolveHost, resolveOptions } from "@slotkeeper/queue";
import { VirtualClock } from "@slotkeeper/testkit/simulator";
import { describeSlotStore } from "@slotkeeper/testkit/store-conformance";
import { expect, test } from "vitest";

describeSlotStore("MemoryStore", {
  async open() {
    const clock = new VirtualClock();
    let tokens = 0;
    const store = new MemoryStore({ clock, newToken: () => `token-${tokens++}` });
    return { store, pass: (ms) => clock.run(ms), close: async () => {} };
  },
});

function batchOf(session: string, instance: string, host = "h") {
  const { policy } = resolveHost(
    resolveOptions({ maxSlotPerHost: 1, maxSlotPerIp: 0, maxWaitersPerHost: 1 }),
    undefined,
  );
  const waiter = { session, bucket: session, weight: 1, arrivedAt: 1, ttlMs: 60_000, openMs: 1, isGrantable: true };
  return { host, instance, policy, isSemaphore: false, waiters: [waiter] };
}

test("S3: fences of a memory store start at its start-time in milliseconds × 1000", async () => {
  const clock = new VirtualClock(1_732_170_000_000);
  const store = new MemoryStore({ clock, newToken: () => "t" });
  const { verdicts } = await store.tryAcquire(batchOf("a", "one"));
  expect(verdicts[0]).toMatchObject({ slot: { fence: 1_732_170_000_000_001 } });
});

test("S6: shared by several engines, waiters of one that fell silent leave the pool; those registered again stay", async () => {
  const clock = new VirtualClock();
  let tokens = 0;
  const store = new MemoryStore({ clock, newToken: () => `t${tokens++}`, waiterTtlMs: 5_000 });
  await store.tryAcquire(batchOf("holder", "one"));
  await store.tryAcquire(batchOf("waiter", "two"));
  for (let beat = 0; beat < 3; beat++) {
    await clock.run(4_000);
    await store.register(batchOf("waiter", "two"));
  }
  expect((await store.tryAcquire(batchOf("other", "one"))).verdicts[0]).toEqual({ status: "QUEUE_FULL" });
  await clock.run(5_001);
  expect((await store.tryAcquire(batchOf("other", "one"))).verdicts[0]).toMatchObject({ status: "WAIT" });
});

test("S8: withdrawing a granted session under another host's name frees its slot, and none of that host's", async () => {
  let tokens = 0;
  const store = new MemoryStore({ clock: new VirtualClock(), newToken: () => `t${tokens++}` });
  await store.tryAcquire(batchOf("mine", "one", "h"));
  const { policy } = batchOf("theirs", "one", "other");
  await store.tryAcquire(batchOf("theirs", "one", "other"));
  const sessions = [{ session: "mine", end: "canceled", ttlMs: 20_000 } as const];
  await store.withdraw({ host: "other", instance: "one", policy, sessions });
  expect((await store.tryAcquire(batchOf("next", "one", "h"))).verdicts[0]).toMatchObject({ status: "ACQUIRED" });
  expect((await store.tryAcquire(batchOf("last", "one", "other"))).verdicts[0]).toMatchObject({ status: "WAIT" });
});

test("S4: a session that is over is remembered past its deadline: a try that was on its way then is granted nothing", async () => {
  let tokens = 0;
  const clock = new VirtualClock();
  const store = new MemoryStore({ clock, newToken: () => `t${tokens++}` });
  const batch = batchOf("a", "one");
  const { verdicts } = await store.tryAcquire(batch);
  const slotToken = verdicts[0]?.status === "ACQUIRED" ? verdicts[0].slot.slotToken : "";
  await store.release({ ...RELEASE, slotToken });
  await clock.run(60_500);
  expect((await store.tryAcquire(batch)).verdicts).toEqual([{ status: "ENDED", end: "released" }]);
});

const RELEASE = { host: "h", policy: undefined, hitAgoMs: undefined, status: undefined, uncollectedBy: undefined };
