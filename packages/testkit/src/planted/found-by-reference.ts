import { compareHistory } from "../reference/compare.ts";
import { memoryHost, storedHost } from "../reference/engine-host.ts";
import { randomHistory } from "../reference/random-history.ts";
import type { Plant } from "../simulator/world.ts";
import type { Finding, PlantedBug } from "./planted-bugs.ts";
import { search } from "./search.ts";

const WRONG_CALL = "The decision is right: the call says another amount";

/** Bugs that decisions one after the other on the current book of a host cannot show, and why. */
const NOT_IN_A_DECISION: ReadonlyMap<string, string> = new Map([
  ["an answer goes out before its commit", "It needs a decision while the commit of another one is on its way"],
  ["an answer from a decision in progress", "It needs a poll while a commit is on its way"],
  ["tags only count: after a failover an old base is accepted", "It needs a failover"],
  [
    "a stale commit is accepted: a lease is reclaimed after its renewal",
    "It needs two instances that decide on the same book at once",
  ],
  [
    "a read finds no changes: a slot that ended elsewhere is returned again",
    "It needs an answer from a cached book that is not current",
  ],
  [
    "requests at a key do not notice changes of its budget",
    "In most decisions the line also changes for another reason: none of the first 400 histories shows it",
  ],
  ["what was not used of a budget is given back twice", WRONG_CALL],
  ["a use above the estimate makes no debt", WRONG_CALL],
]);

/** How many histories a planted bug gets. */
const HISTORIES = 400;

/** By the comparison with the reference book. */
export async function byReference({ name, plant }: PlantedBug, first?: number): Promise<Finding> {
  const unseen = NOT_IN_A_DECISION.get(name);
  if (unseen !== undefined) return { isFound: false, why: unseen };
  const undo = plant.engine?.();
  try {
    return await search(HISTORIES, first, "differs", (seed) => differs(seed, plant));
  } finally {
    undo?.();
  }
}

/** A store is needed to show its bugs; a book that stays in memory to show those of its index. */
async function differs(seed: number, plant: Plant): Promise<boolean> {
  const changed = { config: plant.config, newSecret: plant.newSecret?.() };
  const host = plant.engine === undefined ? storedHost(plant) : memoryHost();
  return (await compareHistory(randomHistory(seed), host, changed)) !== undefined;
}
