import type {
  BatchReply,
  HostDump,
  HostSnapshot,
  QueueDump,
  QueueEvent,
  StoreSnapshot,
  WaiterBatch,
} from "@slotkeeper/queue";
import type { SimInstance } from "./sim-instance.ts";
import type { World } from "./world.ts";

/**
 * What may never be, looked at after every step of every history:
 *   V1 more leases of a host, or of a bucket, than its limit; seen in the store, and in the hands of the clients
 *   V2 one slot with two owners, or one session with two slots
 *   V3 a fence that is not above all before it at its host
 *   V4 a sum that is not what it sums, in the store or in an instance
 *   V5 a free slot beside somebody who may have it (at once where the store is calm, else for longer than a poll interval)
 *   V6 a session that ends twice, or begins while it lives
 * and at the end, with everybody gone: V7 anything left over.
 */
export class Invariants {
  readonly #world: World;
  readonly #fences = new Map<string, number>();
  readonly #granted = new Map<string, string>();
  readonly #lives = new Map<string, "pending" | "granted" | "ended">();
  readonly #idleSince = new Map<string, number>();
  readonly violations: string[] = [];

  constructor(world: World) {
    this.#world = world;
  }

  onDecided(batch: WaiterBatch, { verdicts }: BatchReply): void {
    const fresh: number[] = [];
    verdicts.forEach((verdict, at) => {
      if (verdict.status !== "ACQUIRED") return;
      const { slotToken, fence } = verdict.slot;
      const session = batch.waiters[at]?.session ?? "";
      const owner = this.#granted.get(slotToken);
      if (owner !== undefined && owner !== session)
        this.#fault("V2", `${slotToken} granted to ${owner} and ${session}`);
      if (owner === session) return;
      this.#granted.set(slotToken, session);
      fresh.push(fence);
    });
    // A batch grants in the order of ranks, which is not the order it was sent in.
    for (const fence of fresh.sort((one, other) => one - other)) {
      if (fence <= (this.#fences.get(batch.host) ?? 0))
        this.#fault("V3", `fence ${fence} does not grow at ${batch.host}`);
      this.#fences.set(batch.host, fence);
    }
  }

  onEvent(event: QueueEvent, instance: string): void {
    if (!("session" in event) || event.session === undefined) return;
    const key = `${instance} ${event.session}`;
    const life = this.#lives.get(key);
    if (event.type === "uncollected") return;
    if (event.type === "session-created") {
      if (life === "pending") this.#fault("V6", `${key} begins while it lives`);
      this.#lives.set(key, "pending");
      return;
    }
    // A slot that was delivered may still be given back by its client.
    const mayEnd = life === "pending" || (life === "granted" && event.type === "canceled");
    if (!mayEnd) this.#fault("V6", `${key} ended twice, the second time ${event.type}`);
    this.#lives.set(key, event.type === "granted" ? "granted" : "ended");
  }

  async check(): Promise<void> {
    const snapshot = await this.#world.store.snapshot();
    for (const host of snapshot.hosts) this.#checkLimits(host);
    for (const instance of this.#world.instances) {
      if (!instance.isAlive) continue;
      const dump = instance.queue.dump();
      for (const host of dump.hosts) {
        this.#checkSums(host);
        this.#checkConserved(instance, host, dump, snapshot);
      }
    }
    for (const fault of this.#world.holds.faults.splice(0)) this.#fault("V2", fault);
  }

  async checkEnd(): Promise<void> {
    const snapshot = await this.#world.store.snapshot();
    for (const { host, inFlight, waiting } of snapshot.hosts) {
      if (inFlight > 0 || waiting > 0) this.#fault("V7", `${inFlight} leases and ${waiting} waiters left at ${host}`);
    }
    if (snapshot.sessions > 0) this.#fault("V7", `${snapshot.sessions} sessions left in the store`);
    for (const instance of this.#world.instances) {
      const { sessions, hosts, unsent } = instance.queue.dump();
      if (sessions.total + hosts.length + unsent > 0) {
        this.#fault(
          "V7",
          `${instance.name}: ${sessions.total} sessions, ${hosts.length} hosts, ${unsent} letters left`,
        );
      }
    }
    for (const [key, life] of this.#lives) {
      if (life === "pending" && this.#isAlive(key)) this.#fault("V6", `${key} never ended`);
    }
  }

  #checkLimits({ host, leases, inFlight, waiting, buckets }: HostSnapshot): void {
    const { maxSlotPerHost = 0, maxSlotPerIp = 0, maxWaitersPerHost = 0 } = this.#world.plan.config;
    if (leases.length > maxSlotPerHost)
      this.#fault("V1", `${leases.length} leases at ${host}, limit ${maxSlotPerHost}`);
    const sessions = new Set(leases.map(({ session }) => session));
    if (sessions.size < leases.length) this.#fault("V2", `a session holds two slots at ${host}`);
    for (const { bucket, inFlight } of buckets) {
      if (bucket !== "" && maxSlotPerIp > 0 && inFlight > maxSlotPerIp)
        this.#fault("V1", `${inFlight} leases of ${bucket} at ${host}`);
    }
    if (maxWaitersPerHost > 0 && waiting > maxWaitersPerHost)
      this.#fault("V1", `${waiting} waiters in the pool of ${host}`);
    if (sum(buckets, "inFlight") !== inFlight || sum(buckets, "waiting") !== waiting)
      this.#fault("V4", `sums of ${host}`);
    // A store whose clock jumped takes slots back before their holders expect it; that is what fences are for.
    const used = this.#world.holds.count(host);
    if (this.#world.plan.storeJumps === 0 && used > maxSlotPerHost)
      this.#fault("V1", `${used} clients use ${host} at once`);
  }

  #checkSums({ host, pending, waiting, buckets }: HostDump): void {
    const places = waiting.filter(({ place }) => place === "inside").length;
    const isRight =
      pending === waiting.length && sum(buckets, "pending") === pending && sum(buckets, "places") >= places;
    if (!isRight)
      this.#fault("V4", `counters of ${host}: ${JSON.stringify({ pending, waiting: waiting.length, buckets })}`);
  }

  /** Only where nothing is under way that could be about to grant it. */
  #checkConserved(instance: SimInstance, host: HostDump, dump: QueueDump, { hosts }: StoreSnapshot): void {
    const {
      maxSlotPerHost = 0,
      maxSlotPerIp = 0,
      ipCooldownSeconds = 0,
      pollIntervalMs = 500,
    } = this.#world.plan.config;
    const { clock, plan } = this.#world;
    const key = `${instance.name} ${host.host}`;
    const stored = hosts.find((one) => one.host === host.host);
    const isBusy = instance.store.inFlight > 0 || host.isStoreDown || dump.unsent > 0 || ipCooldownSeconds > 0;
    const isFree = (stored?.inFlight ?? 0) < maxSlotPerHost && (stored?.breaker.phase ?? "closed") === "closed";
    const waits = host.waiting.find(({ bucket, place, isAwake }) => {
      const held = stored?.buckets.find((one) => one.bucket === bucket)?.inFlight ?? 0;
      const isDenied = host.buckets.some((one) => one.bucket === bucket && one.deniedForMs > 0);
      const isBelowLimit = bucket === "" || maxSlotPerIp <= 0 || held < maxSlotPerIp;
      return place === "inside" && isAwake && !isDenied && isBelowLimit;
    });
    if (isBusy || !isFree || waits === undefined) {
      this.#idleSince.delete(key);
      return;
    }
    const since = this.#idleSince.get(key) ?? clock.now();
    this.#idleSince.set(key, since);
    const isAlone = plan.isStoreCalm && plan.instances === 1 && plan.storeJumps === 0;
    const graceMs = isAlone ? SHORTEST_PAUSE_MS : pollIntervalMs + SHORTEST_PAUSE_MS;
    if (clock.now() - since > graceMs) this.#fault("V5", `${waits.session} waits beside a free slot of ${host.host}`);
  }

  #isAlive(key: string): boolean {
    return this.#world.instances.some(({ name, isAlive }) => isAlive && key.startsWith(`${name} `));
  }

  #fault(rule: string, text: string): void {
    this.violations.push(`${rule} at ${this.#world.clock.now()}: ${text}`);
  }
}

/** A cycle may be a millisecond late: it never runs twice in one. */
const SHORTEST_PAUSE_MS = 1;

function sum<K extends string>(items: readonly { readonly [key in K]: number }[], key: K): number {
  return items.reduce((total, item) => total + item[key], 0);
}
