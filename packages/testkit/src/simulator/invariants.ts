import { classOf, type GrantedAnswer, widthOf } from "@slotkeeper/protocol";
import type { BookRecord, KeptCommit, KeptHost, LeaseRecord, OfferRecord, QueueEvent } from "@slotkeeper/queue";
import { groupBy } from "../history/group-by.ts";
import { differenceOf } from "./book-equality.ts";
import { BudgetRules } from "./budget-rules.ts";
import { FleetCounts, isCounted } from "./fleet-counts.ts";
import { UseRules } from "./use-rules.ts";
import { of, WorkConservation } from "./work-conservation.ts";
import type { World } from "./world.ts";

/** Books are compared only in every n-th step, because that costs as much as a hundred other checks. */
const COMPARED_EVERY = 16;

/**
 * The violations that are checked after every step of every history:
 *   V1 more slots of leases and offers of a host, a bucket, a value of a key or a class than its limit, or a slot without a
 *     required key, in the store; more slots in use than there are among the clients
 *   V2 one slot with two owners; one session with two slots, or answered with two
 *   V3 a fence that is not above all earlier fences of its host, also across a failover
 *   V4 a cached book that differs from the store's at the same tag, or an index that differs from its records
 *   V5 a slot that stays free while a waiter may have it
 *   V6 a session that is counted twice in the fleet, or not at all although nothing went wrong
 *   V8 an instance that calls the store without end
 *   V9 a poll before the deadline of its session that is answered with a slot which had ended before that poll
 *   V10 a slot granted past an open breaker, or given back without its cooldown or minimum hold (`use-rules.ts`)
 *   V11 a grant of more or fewer slots than were asked for, or of another class
 *   V12 a budget whose level is not what its charges give, or a grant that it cannot pay (`budget-rules.ts`)
 * At the end, without clients:
 *   V7 anything that is left over
 * A failover may lose leases that clients use. Until these have ended, only the limits of the store and the fences are
 * checked.
 */
export class Invariants {
  readonly #world: World;
  readonly #conservation: WorkConservation;
  readonly #fences = new Map<string, number>();
  readonly #ownerOf = new Map<string, string>();
  /** The tokens that each commit granted, from the first commit on, without the lost ones. */
  readonly #grantedBy: (readonly string[])[] = [];
  /** Tokens that a lost commit granted. */
  readonly #lost = new Set<string>();
  readonly #slotOf = new Map<string, string>();
  readonly #delivered = new Set<string>();
  /** The classes of granted slots, by token. */
  readonly #classes = new Map<string, string>();
  /** When the slots of clients ended in the store, by token. */
  readonly #endedAt = new Map<string, number>();
  readonly #fleet: FleetCounts;
  readonly uses: UseRules;
  readonly budgets: BudgetRules;
  #steps = 0;
  readonly violations: string[] = [];

  constructor(world: World) {
    this.#world = world;
    this.#conservation = new WorkConservation(world);
    this.uses = new UseRules(world.plan.config);
    this.budgets = new BudgetRules(world.plan.config);
    const { crashes, pauses, storeJumps, store } = world.plan;
    const isExact = crashes + pauses + storeJumps === 0 && store !== "rough" && world.keepsAllEnds;
    this.#fleet = new FleetCounts(isExact, world.keepsAllEnds);
  }

  onCommit(commit: KeptCommit): void {
    const { host, tag, changes } = commit;
    const isDelivered = (token: string) => this.#delivered.has(token);
    this.#world.history.note(describe(host, tag, changes));
    const { now = 0 } = changes.head ?? {};
    for (const record of changes.puts) {
      if (record.kind === "waiter") this.#fleet.committed(record.key, record.deadlineAt, now);
      else if (record.kind === "ending") this.#fleet.committed(record.key, record.keepUntil, now);
      else if (record.kind === "lease") this.#fleet.committed(record.session, record.keepUntil, now);
    }
    for (const [kind, key] of changes.dels) {
      if (kind === "lease") this.#endedAt.set(key, this.#world.clock.now());
      // The mark of a session whose instance died is deleted when the session joins again.
      if (kind === "ending" && !changes.puts.some((record) => nameOf(record) === key)) this.#fleet.forgotten(key, now);
    }
    const leases = changes.puts.filter((record) => record.kind === "lease");
    this.#grantedBy.push(leases.flatMap(({ key }) => (this.#ownerOf.has(key) ? [] : [key])));
    for (const { key, session, fence, charge } of leases.sort((a, b) => a.fence - b.fence)) {
      const owner = this.#ownerOf.get(key);
      if (owner !== undefined && owner !== session) this.#fault("V2", `${key} granted to ${owner} and ${session}`);
      if (owner !== undefined) continue;
      this.#classes.set(key, classOf(charge?.asked));
      this.#ownerOf.set(key, session);
      if (fence <= (this.#fences.get(host) ?? 0)) this.#fault("V3", `fence ${fence} of ${session} at ${host}`);
      this.#fences.set(host, Math.max(fence, this.#fences.get(host) ?? 0));
    }
    for (const text of this.uses.committed(commit, isDelivered)) this.#fault("V10", text);
    for (const text of this.budgets.committed(commit)) this.#fault("V12", text);
  }

  onGrantAnswered({ session: claims, slotToken, width }: GrantedAnswer, askedAt: number): void {
    const { id, host, arrivedAt, deadlineAt } = claims;
    const asked = widthOf(claims.demand);
    if (width !== asked) this.#fault("V11", `${id} asked for ${asked} slots and got ${width}`);
    const named = this.#classes.get(slotToken) ?? classOf(claims.demand);
    if (named !== classOf(claims.demand))
      this.#fault("V11", `${id} asked for class ${classOf(claims.demand)} and got a slot of ${named}`);
    const session = `${id} of ${arrivedAt}`;
    const before = this.#slotOf.get(session) ?? slotToken;
    // An instance may answer with the slot of a lost commit before it knows of the loss.
    if (!this.#lost.has(slotToken)) this.#slotOf.set(session, slotToken);
    this.#delivered.add(slotToken);
    this.#world.history.note(`${id} gets ${slotToken}`);
    if (before !== slotToken) this.#fault("V2", `${id} got ${before} and ${slotToken}`);
    const endedAt = this.#endedAt.get(slotToken) ?? Number.POSITIVE_INFINITY;
    if (endedAt < askedAt && this.#timeOf(host) < deadlineAt) this.#fault("V9", `${id} got ${slotToken} after its end`);
  }

  /** The grants and the ends of the last `lost` commits do not count. */
  onFailover(lost: number): void {
    for (const token of this.#grantedBy.splice(this.#grantedBy.length - lost).flat()) this.#lost.add(token);
    for (const [session, token] of this.#slotOf) if (this.#lost.has(token)) this.#slotOf.delete(session);
    this.#endedAt.clear();
    this.#fleet.failedOver();
    this.uses.failedOver(this.#world.store.images());
    this.budgets.failedOver();
  }

  onSpin(instance: string): void {
    this.#fault("V8", `${instance} calls the store without end`);
  }

  onEvent(event: QueueEvent, instance: string): void {
    if (event.type === "cycle" || event.type === "probe-decision") return;
    const about = "session" in event ? (event.session ?? "") : "";
    this.#world.history.note(`${instance}: ${event.type} ${about}${"reason" in event ? ` ${event.reason}` : ""}`);
    if (isCounted(event.type) && about !== "") this.#fleet.count(about, event.type);
  }

  check(): void {
    const isCompared = this.#steps++ % COMPARED_EVERY === 0;
    for (const kept of this.#world.store.images()) {
      this.#checkLimits(kept);
      const waiter = this.#conservation.fault(kept);
      if (waiter !== undefined) {
        this.#fault("V5", `${waiter.key} at ${waiter.instance} waits beside a free slot of ${kept.host}`);
      }
      if (isCompared) this.#compare(kept);
    }
  }

  checkEnd(): void {
    for (const { host, records } of this.#world.store.images()) {
      const left = records.filter(({ kind }) => kind !== "account" && kind !== "limits");
      if (left.length > 0) this.#fault("V7", `left at ${host}: ${JSON.stringify(left)}`);
      else this.#fault("V7", `${host} is left in the store`);
    }
    for (const instance of this.#world.instances) {
      const { sessions, hosts, unsent } = instance.queue.dump();
      if (sessions.total + hosts.length + unsent === 0) continue;
      this.#fault("V7", `${instance.name}: ${sessions.total} sessions, ${hosts.length} hosts, ${unsent} inputs left`);
    }
    for (const miscount of this.#fleet.miscounted()) this.#fault("V6", miscount);
  }

  #checkLimits(kept: KeptHost): void {
    const { maxSlotPerHost = 0, maxSlotPerIp = 0, maxWaitersPerHost = 0 } = this.#world.plan.config;
    const { host } = kept;
    const now = this.#timeOf(host);
    const leases = of(kept, "lease").filter(({ endsAt }) => endsAt > now);
    const held = [...leases, ...of(kept, "offer").filter(({ lapsesAt }) => lapsesAt > now)];
    const taken = widthsOf(held);
    if (taken > maxSlotPerHost) this.#fault("V1", `${taken} slots of ${maxSlotPerHost} taken at ${host}`);
    if (new Set(leases.map(({ session }) => session)).size < leases.length) {
      this.#fault("V2", `a session holds two slots at ${host}`);
    }
    const pools = groupBy(
      of(kept, "waiter").filter(({ isInside }) => isInside),
      ({ demand }) => classOf(demand),
    );
    for (const [name, { length }] of pools)
      if (maxWaitersPerHost > 0 && length > maxWaitersPerHost)
        this.#fault("V1", `${length} in the pool of class ${name} at ${host}`);
    for (const bucket of new Set(held.map(({ bucket }) => bucket))) {
      const own = widthsOf(held.filter((one) => one.bucket === bucket));
      const isOver = bucket !== "" && maxSlotPerIp > 0 && own > maxSlotPerIp;
      if (isOver) this.#fault("V1", `${own} slots of bucket ${bucket} at ${host}, limit ${maxSlotPerIp}`);
    }
    this.#checkKeys(host, held);
    this.#checkClasses(host, held);
    for (const text of this.uses.kept(kept, now)) this.#fault("V10", text);
    this.#checkHands(host, maxSlotPerHost);
  }

  #checkKeys(host: string, held: readonly (LeaseRecord | OfferRecord)[]): void {
    for (const [name, key] of Object.entries(this.#world.plan.config.keys ?? {})) {
      const valueOf = ({ charge }: LeaseRecord | OfferRecord) => charge?.asked?.keys?.[name];
      for (const value of new Set(held.map(valueOf))) {
        const { slots = Number.POSITIVE_INFINITY } = key.shadow === true ? {} : { ...key, ...key.for?.[value ?? ""] };
        if (value === undefined && key.required === true)
          this.#fault("V1", `a slot without the key ${name} at ${host}`);
        const own = widthsOf(held.filter((one) => valueOf(one) === value));
        if (value !== undefined && own > slots)
          this.#fault("V1", `${own} slots of ${name} ${value} at ${host}, limit ${slots}`);
      }
    }
  }

  #checkClasses(host: string, held: readonly (LeaseRecord | OfferRecord)[]): void {
    for (const [name, { ceiling = Number.POSITIVE_INFINITY }] of Object.entries(
      this.#world.plan.config.classes ?? {},
    )) {
      const own = widthsOf(held.filter(({ charge }) => classOf(charge?.asked) === name));
      if (own > ceiling) this.#fault("V1", `${own} slots of class ${name} at ${host}, ceiling ${ceiling}`);
    }
  }

  /** The time of a host stands still while the store's clock, set back, has not caught up. */
  #timeOf(host: string): number {
    const kept = this.#world.store.images().find((image) => image.host === host);
    return Math.max(this.#world.storeClock.now(), kept?.head.now ?? Number.NEGATIVE_INFINITY);
  }

  /** A store whose clock jumps takes slots back earlier than their holders expect. Fences protect against that. */
  #checkHands(host: string, slots: number): void {
    const { clock, plan, failedOverAt, holds } = this.#world;
    const leaseMs = (plan.config.zombieTimeoutSeconds ?? 0) * 1000;
    if (plan.storeJumps > 0 || clock.now() <= failedOverAt + leaseMs) return;
    const used = holds.count(host);
    if (used > slots) this.#fault("V1", `clients use ${used} slots of ${host} at once, limit ${slots}`);
  }

  #compare(kept: KeptHost): void {
    for (const { name, queue, isAlive } of this.#world.instances) {
      const book = isAlive ? queue.bookOf(kept.host) : undefined;
      if (book?.tag !== kept.tag) continue;
      const difference = differenceOf(book, kept);
      if (difference !== undefined) this.#fault("V4", `${name}'s book of ${kept.host} at ${kept.tag}: ${difference}`);
    }
  }

  #fault(rule: string, text: string): void {
    this.#world.history.close();
    this.violations.push(`${rule} at ${this.#world.clock.now()}: ${text}`);
  }
}

function widthsOf(held: readonly { readonly width: number }[]): number {
  return held.reduce((sum, { width }) => sum + width, 0);
}

function nameOf(record: BookRecord): string {
  return record.kind === "lease" ? record.session : record.key;
}

function describe(host: string, tag: string, { head, puts, dels }: KeptCommit["changes"]): string {
  const put = puts
    .filter(({ kind }) => kind !== "account" && kind !== "limits")
    .map((record) => {
      const at = "instance" in record ? `@${record.instance}` : "";
      const more = record.kind === "lease" ? ` ${record.session}${record.isReleased ? " released" : ""}` : "";
      const away = record.kind === "waiter" && record.awayAt !== undefined ? " away" : "";
      return `+${record.kind} ${record.key}${more}${at}${away}`;
    });
  const del = dels.filter(([kind]) => kind !== "account").map(([kind, key]) => `-${kind} ${key}`);
  return `${host} ${tag}: ${head === undefined ? "forgotten" : [...put, ...del].join(", ")}`;
}
