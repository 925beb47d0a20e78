import { SEMAPHORE_PREFIX } from "@slotkeeper/protocol";
import { type HostSnapshot, type HostStore, snapshotOf } from "@slotkeeper/queue";
import { mapInTurns } from "../platform/clock.ts";

/** How many hosts are read in one turn of the event loop. */
const HOSTS_PER_TURN = 200;

/** What people can read of a store. */
export type ReadableStore = Pick<HostStore, "isShared" | "peek" | "hostKeys" | "totals" | "instances">;

/** Reads the state of the whole fleet from the store, for people. It changes nothing. */
export class StoreReader {
  readonly store: ReadableStore;
  readonly #now: () => number;

  /** `now` returns the time of the store, as far as this instance knows it. */
  constructor(store: ReadableStore, now: () => number) {
    this.store = store;
    this.#now = now;
  }

  /** The hosts by key. Hosts that the store does not know are missing. */
  async hosts(keys: readonly string[]): Promise<ReadonlyMap<string, HostSnapshot>> {
    if (keys.length === 0) return new Map();
    const images = [...(await this.store.peek(keys))];
    const now = this.#now();
    return new Map(
      await mapInTurns(
        images,
        HOSTS_PER_TURN,
        ([host, image]) => [host, forPeople(snapshotOf(host, image, Math.max(now, image.head.now)))] as const,
      ),
    );
  }
}

/** The first user of a semaphore fixes its slots. While it has no users, the number in its head is not a limit. */
function forPeople(snapshot: HostSnapshot): HostSnapshot {
  const { hostname, inFlight, waiting } = snapshot;
  const isIdle = inFlight === 0 && waiting === 0;
  return isIdle && hostname?.startsWith(SEMAPHORE_PREFIX) === true ? { ...snapshot, slots: 0 } : snapshot;
}
