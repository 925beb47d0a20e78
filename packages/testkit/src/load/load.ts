import { setMaxListeners } from "node:events";
import { LoadClient, type LoadCounts, type LoadTarget } from "./load-client.ts";
import type { HostPlan } from "./load-plan.ts";

/** A live load against a running service, over HTTP, until it is stopped. */
export class Load {
  readonly counts: LoadCounts = { granted: 0, rejected: 0, errors: 0 };
  readonly #stop = new AbortController();
  readonly #clients: Promise<void>[];

  constructor(target: LoadTarget, plans: readonly HostPlan[]) {
    const { signal } = this.#stop;
    setMaxListeners(0, signal);
    this.#clients = plans.flatMap((plan) =>
      Array.from({ length: plan.clients }, (_, index) =>
        new LoadClient(target, plan, bucketOf(index % plan.buckets), this.counts, signal).run(),
      ),
    );
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#clients);
  }
}

/** Addresses of the range that is reserved for documentation. */
function bucketOf(index: number): string {
  return `203.0.113.${(index % 250) + 1}/32`;
}

/**
 * Leaves this number of sessions waiting at a host whose slots are all held. They are not polled, so they keep their
 * places and get no slots. The service forgets them after `sessionIdleSeconds`.
 */
export async function fillQueue(target: LoadTarget, hostname: string, waiters: number): Promise<void> {
  const { url, headers = {} } = target;
  const ask = async (ipBucket: string, more: object) => {
    const body = JSON.stringify({ hostname, ipBucket, ...more });
    const response = await fetch(`${url}/api/v0/fairqueue/acquire`, { method: "POST", headers, body });
    return ((await response.json()) as { result: string }).result;
  };
  for (let held = 0; (await ask(`holder-${held}`, { waitMs: 1 })) === "granted"; ) held++;
  const AT_ONCE = 32;
  // The client that got no slot is already waiting.
  let next = 1;
  const worker = async () => {
    while (next < waiters) await ask(`bucket-${next++ % 500}`, {});
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}
