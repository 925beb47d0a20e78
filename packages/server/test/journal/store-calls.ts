import { type HostPolicy, resolveHost, resolveOptions, type SlotStore, type Verdict } from "@slotkeeper/queue";

export const HOST = "host.example";

/** What the processes of the crash test enforce. */
export const LIMITS = { maxSlotPerHost: 8, maxSlotPerIp: 2, maxWaitersPerHost: 0, zombieTimeoutSeconds: 600 };

export function policyOf(config: Parameters<typeof resolveOptions>[0] = {}): HostPolicy {
  return resolveHost(resolveOptions(config), HOST).policy;
}

/** Calls to a store as an engine makes them, in fewer words. */
export class Calls {
  readonly #store: SlotStore;
  readonly #policy: HostPolicy;
  readonly #host: string;

  constructor(store: SlotStore, policy: HostPolicy, host = HOST) {
    this.#store = store;
    this.#policy = policy;
    this.#host = host;
  }

  async tryAcquire(...sessions: readonly string[]): Promise<readonly Verdict[]> {
    const reply = await this.#store.tryAcquire({
      ...this.#where,
      isSemaphore: false,
      waiters: sessions.map((session, at) => ({
        session,
        bucket: bucketOf(session),
        weight: 1,
        arrivedAt: at,
        ttlMs: 20_000,
        openMs: this.#policy.breaker.openMs,
        isGrantable: true,
      })),
    });
    return reply.verdicts;
  }

  /** Undefined: not granted. */
  async grant(session: string): Promise<{ slotToken: string; fence: number; leaseMs: number } | undefined> {
    const [verdict] = await this.tryAcquire(session);
    return verdict?.status === "ACQUIRED" ? verdict.slot : undefined;
  }

  withdraw(session: string): Promise<void> {
    return this.#store.withdraw({ ...this.#where, sessions: [{ session, end: "canceled", ttlMs: 20_000 }] });
  }

  release(slotToken: string, { status, uncollectedBy }: { status?: number; uncollectedBy?: string } = {}) {
    return this.#store.release({
      slotToken,
      host: this.#host,
      policy: this.#policy,
      hitAgoMs: undefined,
      status,
      uncollectedBy,
    });
  }

  get #where() {
    return { host: this.#host, instance: "test", policy: this.#policy };
  }
}

/** Session `a-1` is of bucket `a`. */
function bucketOf(session: string): string {
  return session.split("-")[0] as string;
}
