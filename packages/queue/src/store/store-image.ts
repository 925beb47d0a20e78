import type { HostPolicy } from "../host-policy.ts";
import type { BreakerState } from "./breaker.ts";
import type { LeaseFact, StoreFact } from "./facts.ts";
import type { LiveLimits, SessionEnd } from "./slot-store.ts";

export type LeaseImage = { -readonly [key in keyof LeaseFact]: LeaseFact[key] };

export interface HostImage {
  policy: HostPolicy;
  capacity: number | undefined;
  limits: LiveLimits | undefined;
  breaker: BreakerState | undefined;
  lastEndAt: number | undefined;
  readonly cooldowns: Map<string, number>;
}

/**
 * What a list of facts adds up to: the last word on each thing.
 *
 * G1 applying a list is applying its facts one by one; a prefix of a list gives the state of that moment. G2 a fact about
 * something unknown changes nothing: its host or slot was dropped by an earlier fact. G3 `fence` is at least every slot
 * named. Facts are taken as they come: limits were checked when they happened.
 */
export class StoreImage {
  fence = 0;
  readonly hosts = new Map<string, HostImage>();
  readonly leases = new Map<number, LeaseImage>();
  readonly ends = new Map<string, { readonly end: SessionEnd; readonly keepUntil: number }>();
  readonly #slots = new Map<string, number>();

  /** `backMs`: how far the clock went back since the fact; its instants go with it, so that no lease outlasts its term. */
  apply(fact: StoreFact, backMs = 0): void {
    switch (fact.kind) {
      case "host":
        this.#host(fact);
        return;
      case "lease":
        this.#lease(fact, backMs);
        return;
      case "renew":
      case "release":
        this.#endAt(fact.kind === "release", fact.slot, fact.endsAt - backMs);
        return;
      case "over":
      case "undo":
        this.#free(fact.slot, fact.kind === "over");
        return;
      case "end":
        this.#end(fact.session, fact.end, fact.keepUntil - backMs);
        return;
      case "fence":
        this.fence = Math.max(this.fence, fact.fence);
        return;
      case "spacing":
      case "cooldown":
      case "breaker":
      case "limits":
        this.#ofHost(fact, backMs);
    }
  }

  #host({ host, policy, capacity }: StoreFact & { kind: "host" }): void {
    const known = this.hosts.get(host);
    if (known === undefined) {
      const empty = { limits: undefined, breaker: undefined, lastEndAt: undefined, cooldowns: new Map() };
      this.hosts.set(host, { policy, capacity, ...empty });
    } else {
      known.policy = policy;
      known.capacity = capacity;
    }
  }

  #ofHost(fact: StoreFact & { kind: "spacing" | "cooldown" | "breaker" | "limits" }, backMs: number): void {
    const host = this.hosts.get(fact.host);
    if (host === undefined) return;
    if (fact.kind === "limits") host.limits = fact.limits;
    else if (fact.kind === "cooldown") host.cooldowns.set(fact.bucket, fact.until - backMs);
    else if (fact.kind === "spacing")
      host.lastEndAt = fact.lastEndAt === undefined ? undefined : fact.lastEndAt - backMs;
    else host.breaker = movedBack(fact.state, backMs);
  }

  #lease(fact: LeaseFact, backMs: number): void {
    const { grantedAt, endsAt, keepUntil } = fact;
    const instants = { grantedAt: grantedAt - backMs, endsAt: endsAt - backMs, keepUntil: keepUntil - backMs };
    this.leases.set(fact.slot, { ...fact, ...instants });
    this.#slots.set(fact.session, fact.slot);
    this.ends.delete(fact.session);
    this.fence = Math.max(this.fence, fact.slot);
  }

  #endAt(isReleased: boolean, slot: number, endsAt: number): void {
    const lease = this.leases.get(slot);
    if (lease === undefined) return;
    lease.endsAt = endsAt;
    if (!isReleased) return;
    lease.isReleased = true;
    const host = this.hosts.get(lease.host);
    if (host !== undefined) host.lastEndAt = Math.max(host.lastEndAt ?? endsAt, endsAt);
  }

  #free(slot: number, isEnded: boolean): void {
    const lease = this.leases.get(slot);
    if (lease === undefined) return;
    this.leases.delete(slot);
    this.#slots.delete(lease.session);
    if (isEnded) this.ends.set(lease.session, { end: "released", keepUntil: lease.keepUntil });
  }

  #end(session: string, end: SessionEnd, keepUntil: number): void {
    const slot = this.#slots.get(session);
    if (slot !== undefined) this.#free(slot, false);
    this.ends.set(session, { end, keepUntil });
  }
}

function movedBack(state: BreakerState, backMs: number): BreakerState {
  const { openedAt, windowStartAt } = state;
  return {
    ...state,
    ...(openedAt === undefined ? {} : { openedAt: openedAt - backMs }),
    ...(windowStartAt === undefined ? {} : { windowStartAt: windowStartAt - backMs }),
  };
}
