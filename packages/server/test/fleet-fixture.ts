import { MemoryStore } from "@slotkeeper/queue";
import { realClock } from "slotkeeper";
import { type Fixture, openWith, startFixture } from "./service-fixture.ts";

/** Several services on one store. */
export async function startFleet(size: number, config: object = {}): Promise<Fixture[]> {
  const store = new MemoryStore({ clock: realClock, isShared: true });
  const open = openWith(() => store);
  const numbers = Array.from({ length: size }, (_, at) => at + 1);
  return Promise.all(
    numbers.map((at) => startFixture({ open, config: { ...config, controller: { instanceId: `i-${at}` } } })),
  );
}
