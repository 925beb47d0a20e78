import { MemoryStore } from "@slotkeeper/queue";
import { SkewedClock } from "@slotkeeper/testkit/simulator";
import { describeHostStore } from "@slotkeeper/testkit/store-conformance";
import { FakeClock } from "slotkeeper/testing";

describeHostStore("MemoryStore", {
  async open() {
    const world = new FakeClock(1e12);
    const clock = new SkewedClock(world);
    const store = new MemoryStore({ clock, isShared: true });
    return {
      store,
      other: store,
      pass: async (ms) => (ms < 0 ? clock.jump(ms) : world.advance(ms)),
      close: async () => {},
    };
  },
  skip: { restart: "it keeps nothing without a journal" },
});
