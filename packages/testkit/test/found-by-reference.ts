import { compareHistory, randomHistory, storedHost } from "@slotkeeper/testkit/reference";
import type { Plant } from "@slotkeeper/testkit/simulator";

/** Bugs that decisions one after the other on the current book of a host cannot show, and why. */
export const NOT_IN_A_DECISION: ReadonlyMap<string, string> = new Map([
  ["an answer goes out before its commit", "It needs a decision while the commit of another one is on its way"],
  ["tags only count: after a failover an old base is accepted", "It needs a failover"],
  [
    "a stale commit is accepted: a lease is reclaimed after its renewal",
    "It needs two instances that decide on the same book at once",
  ],
  [
    "a read finds no changes: a slot that ended elsewhere is returned again",
    "It needs an answer from a cached book that is not current",
  ],
]);

/** How many histories a planted bug gets. */
const HISTORIES = 400;

/** The seed of the first history in which the engine with the planted bug differs from the reference book. */
export async function foundByReference(plant: Plant): Promise<number | undefined> {
  for (let seed = 1; seed <= HISTORIES; seed++) {
    const changed = { config: plant.config, newSecret: plant.newSecret?.() };
    if ((await compareHistory(randomHistory(seed), storedHost(plant), changed)) !== undefined) return seed;
  }
  return undefined;
}
