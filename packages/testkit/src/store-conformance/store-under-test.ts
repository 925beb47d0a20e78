import {
  type HostPolicy,
  resolveHost,
  resolveOptions,
  type SlotStore,
  type Verdict,
  type Waiter,
} from "@slotkeeper/queue";

/** What an implementation brings to be tested. */
export interface StoreUnderTest {
  readonly store: SlotStore;
  /** Lets so much time pass by the store's clock: virtual, or really waited for. Never asked for more than a second. */
  readonly pass: (ms: number) => Promise<void>;
  close(): Promise<void>;
}

export interface ConformanceOptions {
  readonly open: () => Promise<StoreUnderTest>;
  /** What the implementation does not do, each with the reason. */
  readonly skip?: { readonly push?: string };
}

/** Calls of one host, with what the suite does not vary filled in. Each test has a host of its own. */
export class HostUnderTest {
  static #hosts = 0;
  readonly host = `conformance-${process.pid}-${HostUnderTest.#hosts++}`;
  readonly store: SlotStore;
  readonly pass: (ms: number) => Promise<void>;
  policy: HostPolicy;
  isSemaphore = false;
  #arrivals = 0;

  constructor({ store, pass }: StoreUnderTest, limits: Partial<HostPolicy> = {}) {
    this.store = store;
    this.pass = pass;
    this.policy = { ...DEFAULT_POLICY, ...limits };
  }

  waiter(session: string, more: Partial<Waiter> = {}): Waiter {
    this.#arrivals++;
    const given = {
      bucket: session.split("-")[0] ?? "",
      weight: 1,
      openMs: this.policy.breaker.openMs,
      isGrantable: true,
    };
    return { session: this.name(session), arrivedAt: this.#arrivals, ttlMs: 20_000, ...given, ...more };
  }

  name(session: string): string {
    return `${this.host}:${session}`;
  }

  async try(waiters: readonly (string | Waiter)[], instance = "one") {
    return this.store.tryAcquire(this.#batch(waiters, instance));
  }

  async register(waiters: readonly (string | Waiter)[], instance = "one") {
    return this.store.register(this.#batch(waiters, instance));
  }

  /** The statuses alone, in the order asked. */
  async statuses(waiters: readonly (string | Waiter)[], instance = "one"): Promise<Verdict["status"][]> {
    return (await this.try(waiters, instance)).verdicts.map(({ status }) => status);
  }

  /** A slot; fails where none is given. */
  async take(waiter: string | Waiter, instance = "one") {
    const { verdicts } = await this.try([waiter], instance);
    if (verdicts[0]?.status !== "ACQUIRED") throw new Error(`Expected a slot, got ${JSON.stringify(verdicts[0])}`);
    return verdicts[0].slot;
  }

  release(slotToken: string, more: { hitAgoMs?: number; status?: number; uncollectedBy?: string } = {}) {
    const { hitAgoMs, status, uncollectedBy } = more;
    return this.store.release({ slotToken, host: this.host, policy: this.policy, hitAgoMs, status, uncollectedBy });
  }

  withdraw(session: string, end: "canceled" | "timeout" | "throttled", instance = "one") {
    const sessions = [{ session: this.name(session), end, ttlMs: 20_000 }];
    return this.store.withdraw({ host: this.host, instance, policy: this.policy, sessions });
  }

  report(status: number) {
    return this.store.report({ host: this.host, policy: this.policy, status });
  }

  #batch(waiters: readonly (string | Waiter)[], instance: string) {
    const asked = waiters.map((waiter) => (typeof waiter === "string" ? this.waiter(waiter) : waiter));
    return { host: this.host, instance, policy: this.policy, isSemaphore: this.isSemaphore, waiters: asked };
  }
}

const DEFAULT_POLICY: HostPolicy = {
  ...resolveHost(resolveOptions({ maxSlotPerIp: 0, maxWaitersPerHost: 0 }), undefined).policy,
  leaseMs: 600,
  maxHoldMs: 60_000,
};
