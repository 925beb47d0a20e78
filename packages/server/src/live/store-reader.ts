import { SEMAPHORE_PREFIX } from "@slotkeeper/protocol";
import { type HostSnapshot, type HostStore, type InstanceView, type StoreTotals, snapshotOf } from "@slotkeeper/queue";

/** Reads the store for people: what is true of the whole fleet. It changes nothing. */
export class StoreReader {
  readonly #store: HostStore;
  readonly #now: () => number;

  /** `now`: the store's time, as well as this instance knows it. */
  constructor(store: HostStore, now: () => number) {
    this.#store = store;
    this.#now = now;
  }

  /** Other instances may be on it too. */
  get isShared(): boolean {
    return this.#store.clock === "shared";
  }

  keys(): Promise<readonly string[]> {
    return this.#store.hostKeys();
  }

  /** By key; those the store does not know are missing. */
  async hosts(keys: readonly string[]): Promise<ReadonlyMap<string, HostSnapshot>> {
    if (keys.length === 0) return new Map();
    const images = await this.#store.peek(keys);
    const now = this.#now();
    return new Map(
      Array.from(images, ([host, image]) => [host, forPeople(snapshotOf(host, image, Math.max(now, image.head.now)))]),
    );
  }

  totals(): Promise<StoreTotals> {
    return this.#store.totals();
  }

  instances(): Promise<readonly InstanceView[]> {
    return this.#store.instances();
  }
}

/** The users of a semaphore fix its slots. While it has none, the next one may fix any number: those in the head are no limit of it. */
function forPeople(snapshot: HostSnapshot): HostSnapshot {
  const { hostname, inFlight, waiting } = snapshot;
  const isIdle = inFlight === 0 && waiting === 0;
  return isIdle && hostname?.startsWith(SEMAPHORE_PREFIX) === true ? { ...snapshot, slots: 0 } : snapshot;
}
