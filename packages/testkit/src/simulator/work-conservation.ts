import { classOf, widthOf } from "@slotkeeper/protocol";
import type { KeptHost, RecordKind, RecordOf, WaiterRecord } from "@slotkeeper/queue";
import type { SimInstance } from "./sim-instance.ts";
import type { World } from "./world.ts";

/** A cycle may be a millisecond late. */
const SHORTEST_PAUSE_MS = 1;
/** How long other instances leave the slots that have ended by time to the instance of the best-ranked waiter. */
const OTHERS_WAIT_MS = 20;
/** The next beat makes up for a lost notification. */
const BEAT_MS = 1_000;
/** Some consecutive calls of a `brisk` store. */
const CALLS_MS = 60;
const OFFER_MS = 50;

/**
 * Looks for a slot that stays free while a waiter may have it, in the pool or behind one that may not, for longer than the specification allows: 20 ms if calls
 * take no time, a beat if notifications get lost, and not at all with a single instance and a `calm` store. It checks
 * the records of the store and the polls that the waiter's instance really holds. Of an offer, only its age counts, not
 * its record.
 */
export class WorkConservation {
  readonly #world: World;
  readonly #since = new Map<string, number>();

  constructor(world: World) {
    this.#world = world;
  }

  /** Returns the waiter that should have had the slot. */
  fault(kept: KeptHost): WaiterRecord | undefined {
    const { clock } = this.#world;
    const waiter = this.#isUnsettled() ? undefined : this.#waiterBesideFree(kept);
    if (waiter === undefined) {
      this.#since.delete(kept.host);
      return undefined;
    }
    const since = this.#since.get(kept.host) ?? clock.now();
    this.#since.set(kept.host, since);
    if (clock.now() - since <= this.#graceMs(kept)) return undefined;
    this.#since.delete(kept.host);
    return waiter;
  }

  /**
   * Whether a clock jumped or the store failed over, which instances learn with their next beats, or a `rough` store is
   * in use.
   */
  #isUnsettled(): boolean {
    const { clock, disturbedAt, plan, instances } = this.#world;
    if (clock.now() - disturbedAt < 3 * BEAT_MS) return true;
    return plan.store === "rough" && instances.some(({ store }) => store.inFlight > 0 || store.isDown);
  }

  #graceMs(kept: KeptHost): number {
    const { plan, instances } = this.#world;
    const isMissed = of(kept, "absence").length > 0 || instances.some(({ isAwake }) => !isAwake);
    const missedMs = isMissed ? 2 * BEAT_MS + OFFER_MS : 0;
    // The waiters of an instance that died stay for a while. The next instance, alone, still leaves slots that ended by
    // time to it.
    const isFleet = plan.instances > 1 || new Set(of(kept, "waiter").map(({ instance }) => instance)).size > 1;
    if (plan.store === "calm") return missedMs + SHORTEST_PAUSE_MS + (isFleet ? OTHERS_WAIT_MS : 0);
    const retryMs = plan.store === "rough" ? (plan.config.pollIntervalMs ?? 500) : 0;
    return missedMs + BEAT_MS + OTHERS_WAIT_MS + CALLS_MS + retryMs;
  }

  #waiterBesideFree(kept: KeptHost): WaiterRecord | undefined {
    const now = Math.max(this.#world.storeClock.now(), kept.head.now);
    const { budgets, keys = {} } = this.#world.plan.config;
    // Slots stay free while a budget refills.
    const isBudgeted = budgets !== undefined || Object.values(keys).some((key) => key.budgets !== undefined);
    if (kept.head.breaker.openedAt !== undefined || isBudgeted) return undefined;
    const enforced = Object.keys(keys).filter((name) => keys[name]?.shadow !== true);
    const held = heldBy(kept, now, this.#world.plan.config.collectMs ?? 0);
    const inFlight = [...held.values()].reduce((sum, count) => sum + count, 0);
    const waiters = of(kept, "waiter");
    // Slots may stay free for a wide waiter, but not if there are enough for the widest.
    if (inFlight + Math.max(1, ...waiters.map(({ demand }) => widthOf(demand))) > kept.head.slots) return undefined;
    const { maxSlotPerIp = 0, maxWaitersPerIp = 0 } = this.#world.plan.config;
    const limit = maxSlotPerIp > 0 ? maxSlotPerIp : Number.POSITIVE_INFINITY;
    // Which waiter of the bucket is its oldest is not known here: for one of this width the bucket has no room.
    const isBlocked = (name: string, choose: (...widths: number[]) => number) => {
      const width = choose(...waiters.filter(({ bucket }) => bucket === name).map(({ demand }) => widthOf(demand)));
      return isCooling(kept, name, now) || (name !== "" && (held.get(name) ?? 0) + width > limit);
    };
    const inside = waiters.filter(({ isInside }) => isInside);
    // One of these must give its place to a waiter outside.
    const isHiding = (waiter: WaiterRecord) =>
      inside.some((one) => isOfClass(one, waiter) && isBlocked(one.bucket, Math.min) && !isOffered(kept, one.key));
    const mayEnter = (waiter: WaiterRecord) => {
      const ofLine = inside.filter((one) => isOfClass(one, waiter) && one.bucket === waiter.bucket);
      return waiter.bucket === "" || maxWaitersPerIp <= 0 || ofLine.length < maxWaitersPerIp;
    };
    return waiters.find((waiter) => {
      const { bucket, isInside, awayAt, deadlineAt } = waiter;
      if (awayAt !== undefined || deadlineAt <= now || isBlocked(bucket, Math.max)) return false;
      if (this.#isAtCeiling(kept, waiter, now)) return false;
      if (enforced.some((name) => hasRival(kept, waiter, name, now))) return false;
      return (isInside || (isHiding(waiter) && mayEnter(waiter))) && this.#isPolled(kept.host, waiter);
    });
  }

  /** Whether the ceiling of its class may have no room for a waiter, or for the widest of its class, which holds it back. */
  #isAtCeiling(kept: KeptHost, { demand }: WaiterRecord, now: number): boolean {
    const name = classOf(demand);
    const { ceiling } = this.#world.plan.config.classes?.[name] ?? {};
    if (ceiling === undefined) return false;
    const held = [...of(kept, "lease").filter(({ endsAt }) => endsAt > now), ...of(kept, "offer")];
    const own = held.filter(({ charge }) => classOf(charge?.asked) === name);
    const waiting = of(kept, "waiter").filter((one) => classOf(one.demand) === name);
    const widest = Math.max(...waiting.map((one) => widthOf(one.demand)));
    return own.reduce((sum, { width }) => sum + width, 0) + widest > ceiling;
  }

  /** Whether the instance that the record names runs and holds a poll. */
  #isPolled(host: string, { key, instance }: WaiterRecord): boolean {
    const home = this.#world.instances.find(({ name }) => name === instance);
    if (home?.isAwake !== true) return false;
    return waitingAt(home, host).some(({ session, polls }) => session === key && polls > 0);
  }
}

function waitingAt({ queue }: SimInstance, host: string) {
  return queue.dump().hosts.find((one) => one.host === host)?.waiting ?? [];
}

function heldBy(kept: KeptHost, now: number, collectMs: number): Map<string, number> {
  const held = new Map<string, number>();
  const add = (bucket: string, width: number) => held.set(bucket, (held.get(bucket) ?? 0) + width);
  for (const { bucket, endsAt, width } of of(kept, "lease")) if (endsAt > now) add(bucket, width);
  for (const { bucket, offeredAt, width } of of(kept, "offer")) {
    if (offeredAt + Math.max(OFFER_MS, collectMs) > now) add(bucket, width);
  }
  return held;
}

function isOffered(kept: KeptHost, session: string): boolean {
  return of(kept, "offer").some(({ key }) => key === session);
}

/** Another request with the same value of a key has slots or waits: it may go first. */
function hasRival(kept: KeptHost, { key, demand }: WaiterRecord, name: string, now: number): boolean {
  const value = demand?.keys?.[name];
  if (value === undefined) return false;
  const held = [...of(kept, "lease").filter(({ endsAt }) => endsAt > now), ...of(kept, "offer")];
  const others = of(kept, "waiter").filter((one) => one.key !== key);
  return (
    held.some(({ charge }) => charge?.asked?.keys?.[name] === value) ||
    others.some((one) => one.demand?.keys?.[name] === value)
  );
}

function isCooling(kept: KeptHost, bucket: string, now: number): boolean {
  return of(kept, "cooldown").some(({ key, until }) => key === bucket && until > now);
}

export function of<K extends RecordKind>({ records }: KeptHost, kind: K): RecordOf<K>[] {
  return records.filter((record): record is RecordOf<K> => record.kind === kind);
}

function isOfClass(one: WaiterRecord, other: WaiterRecord): boolean {
  return classOf(one.demand) === classOf(other.demand);
}
