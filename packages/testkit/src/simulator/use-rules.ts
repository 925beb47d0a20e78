import type { FairQueueConfig } from "@slotkeeper/protocol";
import type { KeptCommit, KeptHost, LeaseRecord } from "@slotkeeper/queue";
import { of } from "./work-conservation.ts";

/** An open breaker counts as closed after this time. */
const HOUR_MS = 3_600_000;
/** Instants are sums of fractions. */
const ROUNDING_MS = 1e-3;

/**
 * V10: what a grant and the end of a slot must respect. It reads the records of the store, with the configuration of the
 * plan:
 *   - no slot for a session for which the breaker is open, and no more probes than `halfOpenProbes`
 *   - a slot that its client gave back, by release or by cancel, starts the cooldown of its bucket; by cancel it ends
 *     no earlier than its minimum hold
 */
export class UseRules {
  readonly #config: FairQueueConfig;
  readonly #leases = new Map<string, LeaseRecord>();
  readonly #coolUntil = new Map<string, number>();
  readonly #windowOf = new Map<string, number>();

  constructor(config: FairQueueConfig) {
    this.#config = config;
  }

  /** A client asks for a session with its own window. */
  asked(session: string, windowMs: number): void {
    this.#windowOf.set(session, windowMs);
  }

  /** `isDelivered`: a client got the slot. */
  *committed({ host, changes }: KeptCommit, isDelivered: (token: string) => boolean): Iterable<string> {
    const { head, puts, dels } = changes;
    if (head === undefined) return;
    const ends = new Map(puts.flatMap((record) => (record.kind === "ending" ? [[record.key, record.end]] : [])));
    for (const record of puts)
      if (record.kind === "cooldown") this.#coolUntil.set(`${host} ${record.key}`, record.until);
    for (const record of puts) {
      if (record.kind !== "lease") continue;
      const before = this.#leases.get(record.key);
      this.#leases.set(record.key, record);
      if (before === undefined) yield* this.#granted(record, head);
      else if (record.isReleased && !before.isReleased) {
        yield* this.#givenBack(host, before, record.endsAt, ends.get(record.session) ?? "released", isDelivered);
      }
    }
    for (const [kind, key] of dels) {
      const lease = kind === "lease" ? this.#leases.get(key) : undefined;
      this.#leases.delete(key);
      const end = lease === undefined ? undefined : ends.get(lease.session);
      // A lease that ended by its time was not given back.
      if (lease === undefined || lease.isReleased || lease.endsAt <= head.now || end === undefined) continue;
      yield* this.#givenBack(host, lease, head.now, end, isDelivered);
    }
  }

  /** Probes of a half-open breaker at once. */
  *kept(kept: KeptHost, now: number): Iterable<string> {
    const { halfOpenProbes = 1 } = this.#config.breaker ?? {};
    const leases = of(kept, "lease").filter(({ isProbe, endsAt }) => isProbe && endsAt > now);
    const offers = of(kept, "offer").filter(({ isProbe, lapsesAt }) => isProbe && lapsesAt > now);
    const probes = leases.length + offers.length;
    if (probes > (halfOpenProbes ?? 1)) yield `${probes} probes at ${kept.host}`;
  }

  /** A failover loses commits: the leases and cooldowns are those that the store has now. */
  failedOver(images: readonly KeptHost[]): void {
    this.#leases.clear();
    this.#coolUntil.clear();
    for (const kept of images) {
      for (const lease of of(kept, "lease")) this.#leases.set(lease.key, lease);
      for (const { key, until } of of(kept, "cooldown")) this.#coolUntil.set(`${kept.host} ${key}`, until);
    }
  }

  *#granted({ session, grantedAt }: LeaseRecord, { breaker }: KeptHost["head"]): Iterable<string> {
    const { openSeconds } = this.#config.breaker ?? {};
    const windowMs = Math.min(this.#windowOf.get(session) ?? (openSeconds ?? 60) * 1000, HOUR_MS);
    if (breaker.openedAt === undefined || grantedAt - breaker.openedAt >= windowMs) return;
    yield `${session} got a slot ${grantedAt - breaker.openedAt} ms after the breaker opened`;
  }

  *#givenBack(
    host: string,
    { key, session, bucket, grantedAt }: LeaseRecord,
    endsAt: number,
    end: string,
    isDelivered: (token: string) => boolean,
  ): Iterable<string> {
    const isCanceled = end === "canceled" && isDelivered(key);
    if (end !== "released" && !isCanceled) return;
    const { minSlotHoldMs, ipCooldownSeconds } = this.#config;
    if (isCanceled && endsAt < grantedAt + (minSlotHoldMs ?? 0) - ROUNDING_MS)
      yield `${session} gave its slot back by cancel and escaped the minimum hold`;
    const coolMs = bucket === "" ? 0 : (ipCooldownSeconds ?? 0) * 1000;
    if (coolMs > 0 && (this.#coolUntil.get(`${host} ${bucket}`) ?? 0) < endsAt + coolMs - ROUNDING_MS)
      yield `${session} gave its slot back as ${end}, and bucket ${bucket} has no cooldown`;
  }
}
