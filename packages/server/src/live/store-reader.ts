import type { HostSnapshot, InstanceView, SlotStore, StoreTotals } from "@slotkeeper/queue";

/** Reads what the store tells of itself, by whatever of the port's reading calls the store has. */
export class StoreReader {
  readonly #store: SlotStore;

  constructor(store: SlotStore) {
    this.#store = store;
  }

  async keys(): Promise<readonly string[]> {
    if (this.#store.hostKeys !== undefined) return this.#store.hostKeys();
    return (await this.#store.snapshot()).hosts.map(({ host }) => host);
  }

  /** By key; those the store does not know are missing. */
  async hosts(keys: readonly string[]): Promise<ReadonlyMap<string, HostSnapshot>> {
    if (keys.length === 0) return new Map();
    const wanted = new Set(keys);
    const { hosts } = await this.#store.snapshot({ hosts: keys });
    return new Map(hosts.filter(({ host }) => wanted.has(host)).map((host) => [host.host, host]));
  }

  async totals(): Promise<StoreTotals> {
    if (this.#store.totals !== undefined) return this.#store.totals();
    const { hosts } = await this.#store.snapshot();
    const sum = (valueOf: (host: HostSnapshot) => number) => hosts.reduce((total, host) => total + valueOf(host), 0);
    return {
      hosts: hosts.length,
      slots: sum(({ slots }) => slots),
      inFlight: sum(({ inFlight }) => inFlight),
      waiting: sum(({ waiting }) => waiting),
      open: sum(({ breaker }) => (breaker.phase === "closed" ? 0 : 1)),
      spaced: 0,
    };
  }

  /** Undefined: the store tells of none. */
  async instances(): Promise<readonly InstanceView[] | undefined> {
    return this.#store.instances?.();
  }
}
