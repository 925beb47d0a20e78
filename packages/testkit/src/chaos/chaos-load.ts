import { setTimeout as pause } from "node:timers/promises";
import { CONSTRAINED_HOST, CONSTRAINTS, demandOf } from "../load/constrained-host.ts";
import type { Random } from "../random/random.ts";
import { ChaosClient, type ClientPlan } from "./chaos-client.ts";
import type { History } from "./history.ts";

/** The lease in seconds: longer than any fault that prevents a renewal, and short enough to wait for. */
export const LEASE_SECONDS = 15;

/** The slots of every host. */
export const SLOTS = 6;

/**
 * The configuration of every instance. Sessions never time out by themselves, so every session that ends without a slot
 * was lost.
 */
export const FAIR_QUEUE = {
  maxSlotPerHost: SLOTS,
  maxSlotPerIp: 2,
  maxWaitersPerHost: 0,
  globalMaxWaiters: -1,
  maxWaitMs: 600_000,
  zombieTimeoutSeconds: LEASE_SECONDS,
  hosts: { [CONSTRAINED_HOST]: CONSTRAINTS },
} as const;

/** A host that always has waiters: its utilisation shows whether slots are handed over. */
export const HOT_HOST = "hot.example";
const HOT: ClientPlan = { host: HOT_HOST, holdMs: 800, pauseMs: 20 };
const HOT_CLIENTS = 36;
const HOT_BUCKETS = 12;

/** Hosts with a free slot for every client: the time of a grant shows whether a problem of one host stops others. */
export const QUIET_HOSTS = ["quiet-1.example", "quiet-2.example", "quiet-3.example", "quiet-4.example"] as const;
const QUIET_CLIENTS = 2;

/** Leases that must be renewed several times. */
const LONG: ClientPlan = { host: "long.example", holdMs: 2.5 * LEASE_SECONDS * 1000, pauseMs: 200 };
const LONG_CLIENTS = 4;

/** Requests of several slots, budgets, keys and classes. */
const CONSTRAINED: ClientPlan = { host: CONSTRAINED_HOST, holdMs: 500, pauseMs: 50, demand: demandOf };
const CONSTRAINED_CLIENTS = 14;
const CONSTRAINED_BUCKETS = 4;

/** Closed loops at a hot host, at quiet hosts, at a host with long holds, and at one with all kinds of limits. */
export class ChaosLoad {
  readonly #url: string;
  readonly #history: History;
  readonly #random: Random;
  readonly #clients: { readonly client: ChaosClient; readonly plan: ClientPlan; readonly bucket: string }[] = [];
  readonly #running = new Set<Promise<void>>();

  constructor(url: string, history: History, random: Random) {
    this.#url = url;
    this.#history = history;
    this.#random = random;
  }

  start(): void {
    for (let n = 0; n < HOT_CLIENTS; n++) this.#add(HOT, `b${n % HOT_BUCKETS}`);
    for (const host of QUIET_HOSTS) {
      for (let n = 0; n < QUIET_CLIENTS; n++) this.#add({ host, holdMs: 40, pauseMs: 400 }, `b${n}`);
    }
    for (let n = 0; n < LONG_CLIENTS; n++) this.#add(LONG, `b${n}`);
    for (let n = 0; n < CONSTRAINED_CLIENTS; n++) this.#add(CONSTRAINED, `b${n % CONSTRAINED_BUCKETS}`);
  }

  /** Kills a client that uses a slot of the hot host, and starts another one. */
  async killHolder(): Promise<void> {
    let found = this.#holder();
    while (found === undefined) {
      await pause(20);
      found = this.#holder();
    }
    const [victim] = this.#clients.splice(this.#clients.indexOf(found), 1);
    victim?.client.die();
    this.#add(found.plan, found.bucket);
  }

  /** Makes a client use its next slot after its lease has ended. */
  plantOverstay(): void {
    const planted = this.#clients.find(({ plan }) => plan === HOT);
    if (planted !== undefined) planted.client.overstays = true;
  }

  /** Starts no more sessions. Resolves when the open ones have ended, or after `withinMs`. */
  async stop(withinMs: number): Promise<void> {
    for (const { client } of this.#clients) client.stop();
    let timer: NodeJS.Timeout | undefined;
    const tooLong = new Promise((resolve) => (timer = setTimeout(resolve, withinMs)));
    await Promise.race([Promise.all(this.#running), tooLong]);
    clearTimeout(timer);
  }

  /** Kills the remaining clients after `stop`. */
  kill(): void {
    for (const { client } of this.#clients) client.die();
  }

  #holder() {
    const holders = this.#clients.filter(({ plan, client }) => plan === HOT && client.isHolding);
    return holders.length === 0 ? undefined : this.#random.pick(holders);
  }

  #add(plan: ClientPlan, bucket: string): void {
    const client = new ChaosClient(this.#url, plan, bucket, this.#history, () => this.#random.next());
    this.#clients.push({ client, plan, bucket });
    const running = client.run().finally(() => this.#running.delete(running));
    this.#running.add(running);
  }
}
