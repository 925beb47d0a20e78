import type { HostPolicy, SlotStore, Waiter } from "@slotkeeper/queue";

/** Sessions that come, wait, are granted, renew, report and go: a bit of everything a host sees in a day. */
export class Churn {
  readonly #store: SlotStore;
  readonly #policy: HostPolicy;
  readonly #held = new Map<string, string[]>();
  #sessions = 0;
  /** Slots that were given out. */
  granted = 0;

  constructor(store: SlotStore, policy: HostPolicy) {
    this.#store = store;
    this.#policy = policy;
  }

  /** Two waiters for each slot, so that some wait and some are granted; those that waited are tried again, then leave. */
  async round(host: string): Promise<void> {
    const { slots } = this.#policy;
    const waiters = Array.from({ length: 2 * slots }, (_, at) => this.#waiter(`bucket ${at % 7}`));
    const batch = { host, instance: "one", policy: this.#policy, isSemaphore: false, waiters };
    await this.#try(batch.host, waiters);
    await this.#giveBack(host);
    const left = await this.#try(host, waiters);
    const sessions = left.map(({ session }) => ({ session, end: "timeout" as const, ttlMs: 20_000 }));
    await this.#store.withdraw({ host, instance: "one", policy: this.#policy, sessions });
    await this.#giveBack(host);
  }

  async #try(host: string, waiters: readonly Waiter[]): Promise<Waiter[]> {
    const batch = { host, instance: "one", policy: this.#policy, isSemaphore: false, waiters };
    const { verdicts } = await this.#store.tryAcquire(batch);
    const held = this.#held.get(host) ?? [];
    this.#held.set(host, held);
    return waiters.filter((_, at) => {
      const verdict = verdicts[at];
      if (verdict?.status === "ACQUIRED") {
        held.push(verdict.slot.slotToken);
        this.granted++;
      }
      return verdict?.status === "WAIT" || verdict?.status === "IP_TOO_MANY";
    });
  }

  async #giveBack(host: string): Promise<void> {
    const tokens = this.#held.get(host)?.splice(0) ?? [];
    const [first] = tokens;
    if (first !== undefined) await this.#store.renew({ slotToken: first });
    const rest = { host, policy: this.#policy, hitAgoMs: 5, status: 200, uncollectedBy: undefined };
    await Promise.all(tokens.map((slotToken) => this.#store.release({ slotToken, ...rest })));
  }

  #waiter(bucket: string): Waiter {
    const session = `session ${this.#sessions++}`;
    const more = { weight: 1, arrivedAt: this.#sessions, ttlMs: 20_000, openMs: 60_000, isGrantable: true };
    return { session, bucket, ...more };
  }
}
