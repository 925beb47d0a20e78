import { byTime, type Call, isAnswered, isDone, isPending } from "./call.ts";
import { Facts } from "./facts.ts";
import { Faults } from "./faults.ts";
import { groupBy } from "./group-by.ts";
import type { Lines } from "./read-history.ts";

/** One request for a slot, from its first call to its end. */
export interface Session {
  readonly host: string;
  readonly bucket: string;
  /** How many slots its first call asks for. */
  readonly width: number;
  /** The values of its first call for keys of the host. */
  readonly keys: Call["keys"];
  readonly class: string;
  /** When it may have begun, at the earliest: the first call, or one with the same request id. */
  askedAt: number;
  /** Its calls of `acquire`, in the order of sending. A first call without an answer is a session of its own. */
  readonly calls: Call[];
  readonly cancels: Call[];
  readonly slots: Slot[];
}

/** A slot that clients know: one that some answer contained. */
export interface Slot {
  readonly token: string;
  readonly session: Session;
  readonly fence: number;
  /** How many slots of the host it is. */
  readonly width: number;
  /** When it first arrived at a client. */
  arrivedAt: number;
  /** The answers that contained it. */
  readonly grants: Call[];
  readonly renewals: Call[];
  readonly releases: Call[];
  readonly revocations: Call[];
}

/** The sessions and slots of a history, as its clients know them. */
export class History {
  readonly lines: Lines;
  readonly facts: Facts;
  readonly faults: Faults;
  readonly sessions: Session[] = [];
  readonly slots = new Map<string, Slot>();
  /** Answers to a poll with the query token of another session. */
  readonly strays: Call[] = [];
  /** Calls that continue a session whose first call the history does not have. */
  unknown = 0;
  readonly #byToken = new Map<string, Session>();
  readonly #askedAt = new Map<string, number>();
  #failures: Map<string, number> | undefined;
  #reports: Map<string | undefined, Call[]> | undefined;

  constructor(lines: Lines) {
    this.lines = lines;
    lines.calls.sort(byTime);
    this.facts = new Facts(lines);
    this.faults = new Faults(lines);
    for (const call of lines.calls) if (call.name === "acquire") this.#acquired(call);
    for (const session of this.sessions) this.#date(session);
    for (const slot of this.slots.values()) slot.grants.sort((a, b) => a.answeredAt - b.answeredAt);
    for (const call of lines.calls) this.#used(call);
  }

  nameOf(host: string): string {
    return this.lines.names.get(host) ?? host;
  }

  isSemaphore(host: string): boolean {
    return this.nameOf(host).startsWith("sem:");
  }

  byHost(): Map<string, Session[]> {
    return groupBy(this.sessions, ({ host }) => host);
  }

  /** The calls that reported how the upstream of a host answered, in the order of sending. */
  reports(host: string): Call[] {
    this.#reports ??= groupBy(
      this.lines.calls.filter(({ reported }) => reported !== undefined),
      (call) => this.#hostOf(call),
    );
    return this.#reports.get(host) ?? [];
  }

  /** When a failure of the upstream was first reported, or the breaker opened by an operator. */
  failedAt(host: string): number {
    this.#failures ??= this.#findFailures();
    return this.#failures.get(host) ?? Number.POSITIVE_INFINITY;
  }

  #acquired(call: Call): void {
    const session = this.#sessionOf(call);
    if (session === undefined) return;
    session.calls.push(call);
    const { queryToken } = call;
    if (queryToken !== undefined) {
      const owner = this.#byToken.get(queryToken);
      if (owner === undefined) this.#byToken.set(queryToken, session);
      else if (owner !== session) this.strays.push(call);
    }
    if (call.result === "granted" && call.slotToken !== undefined) this.#granted(session, call, call.slotToken);
  }

  #sessionOf(call: Call): Session | undefined {
    if (call.token !== undefined) {
      const known = this.#byToken.get(call.token);
      if (known === undefined) this.unknown++;
      return known;
    }
    if (call.host === undefined) return undefined;
    const request = requestOf(call);
    if (request !== undefined && !this.#askedAt.has(request)) this.#askedAt.set(request, call.sentAt);
    const known = call.queryToken === undefined ? undefined : this.#byToken.get(call.queryToken);
    // The same session of a repeated first call.
    if (known?.host === call.host && known.bucket === call.bucket && request !== undefined) return known;
    const { host, bucket, width, keys, class: of, sentAt: askedAt } = call;
    const session = { host, bucket, width, keys, class: of, askedAt, calls: [], cancels: [], slots: [] };
    this.sessions.push(session);
    return session;
  }

  #granted(session: Session, call: Call, token: string): void {
    let slot = this.slots.get(token);
    if (slot === undefined) {
      const { fence, width, answeredAt: arrivedAt } = call;
      slot = { token, session, fence, width, arrivedAt, grants: [], renewals: [], releases: [], revocations: [] };
      this.slots.set(token, slot);
    }
    slot.arrivedAt = Math.min(slot.arrivedAt, call.answeredAt);
    slot.grants.push(call);
    if (!session.slots.includes(slot)) session.slots.push(slot);
  }

  #date(session: Session): void {
    for (const call of session.calls) {
      const request = requestOf(call);
      if (request !== undefined) session.askedAt = Math.min(session.askedAt, this.#askedAt.get(request) ?? call.sentAt);
    }
  }

  #used(call: Call): void {
    const { name, token = "" } = call;
    if (name === "cancel") this.#byToken.get(token)?.cancels.push(call);
    else if (name === "release") this.slots.get(token)?.releases.push(call);
    else if (name === "renew") this.slots.get(token)?.renewals.push(call);
    else if (name === "revoke") this.#revoked(call, token);
  }

  #findFailures(): Map<string, number> {
    const failures = new Map<string, number>();
    for (const call of this.lines.calls) {
      const isFailure = call.reported !== undefined && (call.reported < 200 || call.reported >= 400);
      if (!isFailure && !(call.name === "breaker" && call.set["state"] === "open")) continue;
      const host = this.#hostOf(call);
      if (host !== undefined && !failures.has(host)) failures.set(host, call.sentAt);
    }
    return failures;
  }

  #hostOf({ host, token = "" }: Call): string | undefined {
    return host ?? this.slots.get(token)?.session.host;
  }

  /** An operator names a slot by the key of its host and its fence. */
  #revoked(call: Call, id: string): void {
    for (const slot of this.slots.values()) {
      if (`${slot.session.host}.${slot.fence}` === id) slot.revocations.push(call);
    }
  }
}

function requestOf({ token, requestId, host, bucket }: Call): string | undefined {
  return token === undefined && requestId !== undefined ? `${host}\n${bucket}\n${requestId}` : undefined;
}

/**
 * Until when the client certainly has the slot: until it sends a release or a cancellation, an operator a revocation,
 * or its lease ends, counted from the sending of the last call that granted or renewed it. After lost commits or a jump
 * of the store's clock nothing is certain.
 */
export function certainEnd({ faults }: History, slot: Slot): number {
  const { session, releases, revocations } = slot;
  const givenBack = Math.min(sent(releases), sent(session.cancels), sent(revocations));
  return Math.min(givenBack, leaseEnd(slot), faults.doubtedFrom(session.askedAt));
}

/** The earliest end of the lease: what the client counts from the sending of its calls. */
export function leaseEnd({ grants, renewals }: Slot): number {
  let end = Number.NEGATIVE_INFINITY;
  for (const call of [...grants, ...renewals.filter(isDone)]) end = Math.max(end, call.sentAt + (call.leaseMs || 0));
  return end;
}

/** The latest end of the lease, if a renewal without an answer took effect, too. */
export function latestLeaseEnd(history: History, { grants, renewals, session }: Slot): number {
  const { endsAt } = history.lines;
  let end = Number.NEGATIVE_INFINITY;
  for (const call of grants) end = Math.max(end, call.answeredAt + (call.leaseMs || 0));
  for (const call of renewals) {
    if (isDone(call)) end = Math.max(end, call.answeredAt + (call.leaseMs || 0));
    else if (!isAnswered(call))
      end = Math.max(end, latestEffect(history, session.host, call) + leaseMsOf(history, session.host, endsAt));
  }
  return end;
}

/** When a call without an answer may have taken effect, at the latest. */
export function latestEffect({ faults, facts, lines: { endsAt } }: History, host: string, call: Call): number {
  if (isAnswered(call)) return call.answeredAt;
  const { transitMs = Number.POSITIVE_INFINITY } = facts.of(host);
  // The service may not notice that the client has gone, and hold the poll open to its end.
  const heldMs =
    call.name === "acquire" ? (facts.of(host).most("pollWindowMs", 0, endsAt) ?? Number.POSITIVE_INFINITY) : 0;
  return faults.over(Math.max(Math.min(call.gaveUpAt, endsAt), call.sentAt + heldMs)) + transitMs;
}

/** The longest lease of a host; `Infinity` if it is unknown. */
export function leaseMsOf({ facts }: History, host: string, until: number): number {
  return (facts.of(host).most("zombieTimeoutSeconds", 0, until) ?? Number.POSITIVE_INFINITY) * 1000;
}

/** A release is answered after its commit, or after this time. */
export const ACKNOWLEDGED_MS = 100;

/** When the first of these calls was sent; `Infinity` if there is none. */
export function sent(calls: readonly Call[]): number {
  return calls[0]?.sentAt ?? Number.POSITIVE_INFINITY;
}

/**
 * Until when the session certainly waited, before it had this end. In a fleet one `pending` proves nothing: an instance
 * that finds that another one has the session answers so. The first answer proves nothing either, if its call did not wait.
 */
export function waitedUntil({ faults, facts }: History, { host, askedAt, calls }: Session, end: number): number {
  const pending = calls.filter(
    (call) =>
      isPending(call) &&
      call.token !== undefined &&
      call.answeredAt <= end &&
      !faults.isDelayed(call.sentAt, call.answeredAt),
  );
  const last = pending.at(-1);
  const isFleet = facts.of(host).instances !== 1;
  const proof = isFleet ? pending.findLast(({ answeredAt }) => answeredAt <= (last?.sentAt ?? 0)) : last;
  return Math.max(askedAt, proof?.sentAt ?? askedAt);
}
