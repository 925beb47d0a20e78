import { MemoryStore } from "@slotkeeper/queue";
import { realClock } from "slotkeeper";
import { type Fixture, type FixtureInit, startFixture } from "./service-fixture.ts";

/** Several services on one store. */
export async function startFleet(size: number, config: object = {}, more: FixtureInit = {}): Promise<Fixture[]> {
  let tokens = 0;
  const newToken = () => `slot_${String(tokens++).padStart(20, "0")}`;
  const store = new MemoryStore({ clock: realClock, newToken, waiterTtlMs: 5_000 });
  const open: FixtureInit["open"] = async () => ({
    store,
    description: "shared",
    tokenKeys: ["a key that all of them have"],
    isReady: () => true,
    close: async () => {},
  });
  const numbers = Array.from({ length: size }, (_, at) => at + 1);
  return Promise.all(
    numbers.map((at) => startFixture({ ...more, open, config: { ...config, controller: { instanceId: `i-${at}` } } })),
  );
}
