import { countWait, halveWait } from "../funnel/weighted-turns.ts";
import type { BatchReply, Verdict } from "../store/slot-store.ts";
import type { EngineContext } from "./context.ts";
import { heard } from "./first-news.ts";
import type { HostQueue } from "./host-queue.ts";
import type { Session } from "./session.ts";
import type { Sessions } from "./sessions.ts";

export interface Decided {
  readonly sessions: readonly Session[];
  readonly reply: BatchReply;
  readonly isTry: boolean;
  readonly isWeighted: boolean;
  /** Leases are reckoned from here: the answer may have been long on its way. */
  readonly askedAt: number;
}

/**
 * Brings the store's answer home. A session that ended while the store decided keeps nothing of it: what it was granted
 * goes back. Returns whether another call is worth making in this turn.
 */
export function applyReply(host: HostQueue, engine: EngineContext, sessions: Sessions, decided: Decided): boolean {
  const { reply, isTry, isWeighted } = decided;
  const now = engine.clock.now();
  takeNews(host, reply, now);
  if (reply.reclaimed !== undefined) engine.emit({ type: "reclaimed", slots: reply.reclaimed });
  let failed = 0;
  let moved = 0;
  decided.sessions.forEach((session, at) => {
    const verdict = reply.verdicts[at] as Verdict;
    if (verdict.status !== "WAIT") moved++;
    if (verdict.status === "WAIT" || verdict.status === "IP_TOO_MANY") failed++;
    if (session.isPending && session.place === "trying")
      applyVerdict(host, engine, sessions, session, verdict, decided);
    else if (verdict.status === "ACQUIRED") sessions.giveBackUntold(session, verdict.slot);
    heard(session, engine.agenda);
  });
  for (const id of reply.displaced) displace(host, sessions.find(id));
  if (isWeighted && isTry) host.quota.addFailed(failed);
  sessions.throttleAll(host, now);
  const isMoreToAsk = host.fresh.length > 0 || host.unsure.length > 0 || host.offers > 0;
  return isMoreToAsk || !isTry || (reply.free > 0 && moved > 0);
}

function takeNews(host: HostQueue, reply: BatchReply, now: number): void {
  host.level = reply.level;
  host.knownFree = reply.free + host.freedMeanwhile;
  host.freeAt = reply.freeInMs === undefined ? undefined : now + reply.freeInMs;
  host.hear(reply.breaker, now);
  takeAccounts(host, reply.accounts, now);
}

export function takeAccounts(host: HostQueue, accounts: BatchReply["accounts"], now: number): void {
  for (const account of accounts) {
    const bucket = host.buckets.get(account.bucket);
    if (bucket === undefined) continue;
    bucket.setAccount(account, host.calls, now);
    host.refresh(bucket);
  }
}

function applyVerdict(
  host: HostQueue,
  engine: EngineContext,
  sessions: Sessions,
  session: Session,
  verdict: Verdict,
  { isTry, askedAt }: Decided,
): void {
  const { bucket } = session;
  if (session.isOffered && verdict.status !== "QUEUE_FULL") host.offers++;
  session.isOffered = false;
  switch (verdict.status) {
    case "ACQUIRED":
      halveWait(bucket);
      sessions.grant(session, verdict.slot, askedAt);
      return;
    case "THROTTLED":
      sessions.throttle(session, verdict.code, verdict.retryInMs);
      return;
    case "CAPACITY_MISMATCH":
      sessions.refuse(session, verdict.capacity);
      return;
    case "ENDED":
      endAsStored(sessions, session, verdict.end);
      return;
    case "QUEUE_FULL":
      session.blockedBy = "waiter-pool";
      host.settleOutside(session);
      break;
    case "IP_TOO_MANY":
      halveWait(bucket);
      deny(host, engine, session, verdict);
      host.settleInside(session);
      break;
    case "WAIT":
      session.blockedBy = verdict.blockedBy ?? session.blockedBy;
      if (isTry) countWait(bucket, engine.clock.now(), engine.options().pollIntervalMs);
      host.settleInside(session);
  }
  session.isAdopted = false;
}

function deny(
  host: HostQueue,
  engine: EngineContext,
  session: Session,
  verdict: Verdict & { status: "IP_TOO_MANY" },
): void {
  const { bucket } = session;
  const now = engine.clock.now();
  session.blockedBy = verdict.blockedBy;
  bucket.denyReason = verdict.blockedBy;
  // Its slot came back while the answer was on its way: a window would keep the bucket from what is free again.
  if (bucket.isDenied || (verdict.blockedBy === "ip-limit" && bucket.wasFreedIn(host.calls))) return;
  host.denied.open(bucket, host.policy.cooldownMs, engine.random(), now);
  if (verdict.blockedBy === "ip-limit") host.denied.endBy(bucket, now + verdict.retryInMs);
}

/** What another instance, or an earlier life of this one, decided. The store knows: nothing is withdrawn. */
function endAsStored(sessions: Sessions, session: Session, end: (Verdict & { status: "ENDED" })["end"]): void {
  sessions.timeout(session, end === "timeout" ? "deadline" : end, true);
}

function displace(host: HostQueue, session: Session | undefined): void {
  if (session?.host !== host || !session.isPending || session.place !== "inside") return;
  host.detach(session);
  host.settleOutside(session);
}
