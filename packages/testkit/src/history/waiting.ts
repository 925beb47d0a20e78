import { type Call, isAnswered, isDone } from "./call.ts";
import { groupBy } from "./group-by.ts";
import { type History, latestEffect, latestLeaseEnd, leaseMsOf, type Session, type Slot } from "./history.ts";
import { joined, type Span } from "./spans.ts";

/** What the rules about times need to know of a host. */
export interface Timing {
  readonly transitMs: number;
  readonly promptMs: number;
  readonly collectMs: number;
  readonly leaseMs: number;
  readonly hasSpacing: boolean;
}

/** `undefined` if a fact is unknown. */
export function timingOf(history: History, host: string): Timing | undefined {
  const facts = history.facts.of(host);
  const { transitMs, promptMs } = facts;
  const { endsAt } = history.lines;
  const collectMs = facts.most("collectMs", 0, endsAt);
  if (transitMs === undefined || promptMs === undefined || collectMs === undefined) return undefined;
  const hasSpacing = facts.during(0, endsAt).some((config) => config.hasSpacing);
  return { transitMs, promptMs, collectMs, leaseMs: leaseMsOf(history, host, endsAt), hasSpacing };
}

/** A call that was certainly held open by the service, because it was answered. */
function isHeld(call: Call): boolean {
  const isWaiting = call.token !== undefined || call.waitMs > 0;
  return isWaiting && isDone(call) && call.blockedBy !== "store" && call.blockedBy !== "paused";
}

/** When a poll of the session was certainly open at the service, poll by poll. */
export function openPolls({ calls }: Session, { transitMs }: Timing): Span[] {
  return calls
    .filter(isHeld)
    .map(({ sentAt, answeredAt }) => ({ from: sentAt + transitMs, until: answeredAt - transitMs }))
    .filter(({ from, until }) => until > from);
}

/** When the session certainly waited with a client that was present: one poll after the other. */
export function waits({ calls, slots }: Session, { transitMs, collectMs }: Timing): Span[] {
  const arrivedAt = Math.min(...slots.map((slot) => slot.arrivedAt));
  const polls = calls.filter((call) => isHeld(call) && call.sentAt < arrivedAt);
  return joined(
    polls.map(({ sentAt, answeredAt }) => ({ from: sentAt, until: Math.min(answeredAt, arrivedAt) })),
    Math.min(transitMs, collectMs),
  )
    .map(({ from, until }) => ({ from: from + transitMs, until: until - transitMs }))
    .filter(({ from, until }) => until > from);
}

/** When the session may have had a slot, known to clients or not. */
export function mayHold(history: History, session: Session, timing: Timing): (Span & { readonly width: number })[] {
  const spans: Span[] = session.slots.map((slot) => ({
    from: Math.max(session.askedAt, slot.arrivedAt - 2 * timing.transitMs),
    until: latestEnd(history, slot, timing),
  }));
  for (const [index, call] of session.calls.entries()) {
    const next = session.calls.slice(index + 1).find(isAnswered);
    if (!isAnswered(call)) {
      const lost = latestEffect(history, session.host, call) + timing.collectMs + timing.leaseMs;
      spans.push({ from: call.sentAt, until: Math.min(lost, next?.answeredAt ?? Number.POSITIVE_INFINITY) });
    } else if (call.result === "pending") {
      // Between two polls a slot may wait for its client.
      const from = call.answeredAt - timing.transitMs;
      const back = (session.calls[index + 1]?.sentAt ?? Number.POSITIVE_INFINITY) + timing.transitMs;
      const until = Math.min(back, call.answeredAt + 2 * timing.collectMs + timing.transitMs);
      if (until - from > 3 * timing.transitMs) spans.push({ from, until });
    }
  }
  return spans.map((span) => ({ ...span, width: session.width }));
}

/** The greatest width that a session of the host asks for. */
export function widestOf(sessions: readonly Session[]): number {
  return sessions.reduce((widest, { width }) => Math.max(widest, width), 1);
}

/** When the slot was free again, at the latest, as far as clients know. */
function latestEnd(history: History, slot: Slot, { hasSpacing, leaseMs }: Timing): number {
  const { releases, revocations, session } = slot;
  const canceled = session.cancels.filter(({ result }) => result === "canceled");
  const back = [...releases, ...revocations, ...canceled].filter(isDone).map(({ answeredAt }) => answeredAt);
  const leaseEnd = latestLeaseEnd(history, slot);
  // A released slot may stay occupied for at most one lease.
  if (hasSpacing)
    return Math.max(leaseEnd, ...releases.map((call) => latestEffect(history, session.host, call) + leaseMs));
  return Math.min(leaseEnd, ...back);
}

/** A line is the sessions of one class and one bucket. */
export function lineOf({ class: of, bucket }: Session): string {
  return `${of}\n${bucket}`;
}

/** Whether a waiter pool may have been full: of a class of the host, or of one of its lines. */
export function mayFillPool(history: History, host: string, sessions: readonly Session[]): boolean {
  const limit = limitOf(history, host, "maxWaitersPerHost");
  const classes = groupBy(sessions, (session) => session.class);
  const isFull = [...classes.values()].some((ofClass) => mostWaiting(ofClass, idleMsOf(history, host)) > limit);
  return isFull || mayFillPlaces(history, host, sessions);
}

export function mayFillPlaces(history: History, host: string, sessions: readonly Session[]): boolean {
  const limit = limitOf(history, host, "maxWaitersPerIp");
  if (limit === Number.POSITIVE_INFINITY) return false;
  const lines = groupBy(sessions, lineOf);
  return [...lines.values()].some((ofLine) => mostWaiting(ofLine, idleMsOf(history, host)) > limit);
}

function limitOf(history: History, host: string, key: "maxWaitersPerHost" | "maxWaitersPerIp"): number {
  return history.facts.of(host).least(key, 0, history.lines.endsAt) ?? 0;
}

/** A session whose client left waits until it is idle. */
function idleMsOf({ facts, lines: { endsAt } }: History, host: string): number {
  return 1000 * (facts.of(host).most("sessionIdleSeconds", 0, endsAt) ?? Number.POSITIVE_INFINITY);
}

/** The largest number of sessions that may wait at a time. */
function mostWaiting(sessions: readonly Session[], idleMs: number): number {
  const steps = sessions.flatMap(({ askedAt, calls, slots }) => {
    const last = calls.findLast(isAnswered) ?? calls[0];
    const isOver = slots.length > 0 || last?.result === "timeout" || last?.result === "throttled";
    const leftAt = last === undefined || !isAnswered(last) ? askedAt : last.answeredAt;
    return [
      { at: askedAt, by: 1 },
      { at: isOver ? leftAt : leftAt + idleMs, by: -1 },
    ];
  });
  steps.sort((a, b) => a.at - b.at || b.by - a.by);
  let [most, count] = [0, 0];
  for (const { by } of steps) {
    count += by;
    most = Math.max(most, count);
  }
  return most;
}
