import { MemoryStore } from "@slotkeeper/queue";
import { realClock } from "slotkeeper";
import { type Fixture, openWith, startFixture } from "./service-fixture.ts";

/** Several services on one store. */
export async function startFleet(size: number, config: object = {}): Promise<Fixture[]> {
  let tokens = 0;
  const newToken = () => `slot_${String(tokens++).padStart(20, "0")}`;
  const store = new MemoryStore({ clock: realClock, newToken, waiterTtlMs: 5_000 });
  const open = openWith(() => store);
  const numbers = Array.from({ length: size }, (_, at) => at + 1);
  return Promise.all(
    numbers.map((at) => startFixture({ open, config: { ...config, controller: { instanceId: `i-${at}` } } })),
  );
}
