import { MemoryStore } from "@slotkeeper/queue";
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

test("fences of a memory store start at its start-time in milliseconds × 1000", async () => {
  const clock = new VirtualClock(1_732_170_000_000);
  const store = new MemoryStore({ clock, newToken: () => "t" });
  expect(store.heartbeatMs).toBeUndefined();
  expect((await store.snapshot()).hosts).toEqual([]);
});
