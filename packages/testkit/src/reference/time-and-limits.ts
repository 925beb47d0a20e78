import { classOf, DEFAULT_CLASS, widthOf } from "@slotkeeper/protocol";
import type { Impossible, Input } from "@slotkeeper/queue/internals";
import { HandOut, OFFER_MS } from "./hand-out.ts";
import { AHEAD_MS, type InputOf, isCounted, KEPT_MS } from "./slots-and-ends.ts";
import { first, type Slot } from "./state.ts";

/** What time ends, and which limits are in force: a part of the reference book. */
export class TimeAndLimits extends HandOut {
  // Time. What ends by time ends at exactly its time: leases first, by fence.

  passTime(now: number): void {
    if (this.given === undefined)
      Object.assign(this, { now, fence: Math.floor(now * 1000), forgottenAt: now - KEPT_MS + AHEAD_MS });
    for (;;) {
      const slot = first(this.slots, (one) => [one.endsAt, one.token ? 0 : 1, one.fence, one.session]);
      if (slot === undefined || slot.endsAt > now) break;
      this.moveTo(slot.endsAt);
      if (slot.token === undefined) this.lapse(slot);
      else {
        this.endLease(slot);
        if (!slot.isReleased) this.notes.push({ kind: "reclaimed", bucket: slot.bucket, fence: slot.fence });
      }
    }
    this.moveTo(now);
    const { instance: own, seenAt } = this.context;
    this.absences = this.absences.filter(
      ({ instance, missedAt }) => instance !== own && (seenAt(instance) ?? 0) <= missedAt,
    );
  }

  /** An offer was not collected: the client is away or, if its poll was open, its instance. */
  lapse(offer: Slot): void {
    const { session, instance, since, endsAt } = offer;
    this.passOn(offer);
    const waiter = this.waiters.find((one) => one.session === session);
    if (waiter === undefined || waiter.awayAt !== undefined || this.context.isPolledHere(session)) return;
    if (endsAt - since > OFFER_MS) waiter.awayAt = since;
    else if ((this.context.seenAt(instance) ?? 0) > endsAt) waiter.awayAt = endsAt - this.context.collectMs;
    else this.absences = [...this.absences.filter((one) => one.instance !== instance), { instance, missedAt: endsAt }];
  }

  // Limits: those of a host's name replace those of none; otherwise the configuration that was loaded last is in force. At
  // a host in use the time of the load counts even if nothing else changed.

  useLimits(): void {
    const { limits } = this.context;
    const isSame = this.given?.hostname === limits.hostname;
    const isNewer = limits.loadedAt > (this.given?.loadedAt ?? Number.NEGATIVE_INFINITY);
    const isOther = JSON.stringify(this.given?.policy) !== JSON.stringify(limits.policy);
    const isInUse = this.slots.length + this.waiters.length > 0;
    if (!isSame || (isNewer && (isOther || isInUse))) this.given = limits;
  }

  /** Changed limits keep what was spent. A new budget starts full. */
  useBudgets(): void {
    for (const account of Object.keys(this.budgets)) this.budgetOf(account);
  }

  /** A cost of a budget, a key or a class that the host does not have, or a key that it requires. */
  unknownDemand({ demand = {} }: InputOf<"arrive">): Impossible | undefined {
    const { cost = {}, keys = {} } = demand;
    const { budgets, keys: known = [], classes = {} } = this.policy;
    const all = [{ budgets }, ...known, ...known.flatMap((key) => Object.values(key.for ?? {}))];
    const names = {
      budget: all.flatMap((limits) => Object.keys(limits.budgets ?? {})),
      key: known.map((policy) => policy.name).filter((one) => one !== "bucket"),
      class: Object.keys(classes),
    };
    const absent = (what: keyof typeof names, field: string, value: number | string | undefined) => ({
      field,
      value,
      most: undefined,
      limit: `because the host has no such ${what}`,
      known: [...new Set(names[what])].toSorted(),
    });
    const name = Object.keys(cost).find((one) => !names.budget.includes(one));
    if (name !== undefined) return absent("budget", `cost.${name}`, cost[name]);
    const key = Object.keys(keys).find((one) => !names.key.includes(one));
    if (key !== undefined) return absent("key", `keys.${key}`, keys[key]);
    const of = classOf(demand);
    if (of !== DEFAULT_CLASS && !names.class.includes(of)) return absent("class", "class", of);
    return this.lackedKey({ demand: { keys } });
  }

  lackedKey({ demand: { keys = {} } = {} }: Pick<InputOf<"arrive">, "demand">): Impossible | undefined {
    const required = this.policy.keys?.find(
      ({ name, isRequired, isShadow }) => isRequired && !isShadow && keys[name] === undefined,
    );
    if (required === undefined) return undefined;
    const { name } = required;
    return { field: `keys.${name}`, value: undefined, most: undefined, limit: "because the host requires it" };
  }

  /** A semaphore without users may get another capacity. */
  leaveCapacity(): void {
    if (this.slots.length + this.waiters.length === 0) this.capacity = undefined;
  }

  createsHost(input: Input): boolean {
    const { protectHttpCodes } = this.context.limits.policy.breaker;
    if (input.kind === "arrive") return input.deadlineAt > this.context.now;
    return input.kind === "report"
      ? isCounted(input.status, protectHttpCodes)
      : ["limits", "breaker", "pause"].includes(input.kind);
  }

  /** Why the limits can never allow the session. A semaphore without users has the slots that its first user asks for. */
  never({ bucket, limit, demand }: InputOf<"arrive">): Impossible | undefined {
    const [width, asking] = [widthOf(demand), { bucket, demand }];
    const isUnset = this.context.isSemaphore && this.capacity === undefined;
    const slots = isUnset ? (limit ?? this.policy.slots) : this.policy.slots;
    const asked = { field: "width", value: width } as const;
    if (width > slots) return { ...asked, most: slots, limit: "the number of slots of the host" };
    if (width > this.limit(bucket))
      return { ...asked, most: this.limit(bucket), limit: "the most slots of one bucket" };
    const narrow = this.policy.keys?.find((key) => width > this.keySlots(key, asking));
    if (narrow !== undefined)
      return { ...asked, most: this.keySlots(narrow, asking), limit: `the slots of \`keys.${narrow.name}\`` };
    const named = classOf(demand);
    if (width > this.ceiling(named))
      return { ...asked, most: this.ceiling(named), limit: `the ceiling of \`classes.${named}\`` };
    const dear = this.tooDear(asking);
    if (dear === undefined) return undefined;
    const [account, value] = dear;
    const [name, key] = account.split(" ");
    const of = key === undefined ? "the burst of the budget" : `the burst of the budget of \`keys.${key}\``;
    return { field: `cost.${name}`, value, most: this.budgetPolicy(account)?.burst, limit: of };
  }
}
