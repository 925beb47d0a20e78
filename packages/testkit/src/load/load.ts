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

/** Holds one slot at each of that number of hosts. */
export async function holdOne(target: LoadTarget, hosts: number): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < hosts) await ask(target, { hostname: `still-${next++}.example`, ipBucket: "a", waitMs: 1 });
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

/**
 * Leaves this number of sessions waiting at a host whose slots are all held. They are not polled, so they keep their
 * places and get no slots. The service forgets them after `sessionIdleSeconds`.
 */
export async function fillQueue(target: LoadTarget, hostname: string, waiters: number): Promise<void> {
  const holder = (held: number) => ask(target, { hostname, ipBucket: `holder-${held}`, waitMs: 1 });
  for (let held = 0; (await holder(held)) === "granted"; ) held++;
  // The client that got no slot is already waiting.
  let next = 1;
  const worker = async () => {
    while (next < waiters) await ask(target, { hostname, ipBucket: `bucket-${next++ % 500}` });
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

/** Calls in progress at the same time. */
const AT_ONCE = 32;

async function ask({ url, headers = {} }: LoadTarget, message: object): Promise<string> {
  const body = JSON.stringify(message);
  const response = await fetch(`${url}/api/v0/fairqueue/acquire`, { method: "POST", headers, body });
  return ((await response.json()) as { result: string }).result;
}
