/**
 * HIST5  No session and no lease ends without a reason:
 *     - a renewal is refused only when the slot was given back or revoked, or its lease may have ended;
 *     - `timeout` with `deadline` or `idle` comes after `maxWaitMs`, or after `sessionIdleSeconds` without a call; with
 *       `canceled` after a cancellation, with `released` after a grant;
 *     - `unknown-token` is never the answer to a token that the service issued;
 *     - `throttled` comes after a failure of the upstream was reported, or an operator opened the breaker.
 *
 * Not promised: which of `deadline` and `idle` is the reason, because the service forgets it when the end is kept in the
 * store. In a fleet, the time without a call counts from the first call, if that one did not wait and the next one went
 * to another instance at once: the first instance may commit the arrival later, and then has the session. Nor does a poll
 * count there that is `pending` before its window ends: another instance has the session. Nor does the last poll before a
 * silence: for `pollIntervalMs`, or while the store is slow, an instance with an old copy of the session may hold it, and
 * the one that has the session does not know. That a session which waits is ever answered (HIST6 says when), nor that the breaker opens at the right
 * number of failures. After lost commits or a jump of the store's clock sessions that had begun are not judged; nor are early ends
 * after a jump of an instance's clock.
 * Cost: O(n).
 */
import { type Call, isAnswered, isPending } from "../call.ts";
import { certainEnd, type History, type Session } from "../history.ts";
import { Findings, type Rule } from "../rule.ts";

export const reasons: Rule = {
  name: "HIST5",
  title: "no session and no lease ends without a reason",
  judge(history) {
    const found = new Findings("HIST5", history);
    for (const session of history.sessions) {
      const doubtedFrom = history.faults.doubtedFrom(session.askedAt);
      judgeRenewals(history, session, doubtedFrom, found);
      for (const [index, call] of session.calls.entries()) {
        if (call.answeredAt >= doubtedFrom) continue;
        found.judged++;
        const fault =
          call.result === "timeout"
            ? timeoutFault(history, session, call, index)
            : call.result === "throttled" && !(history.failedAt(session.host) <= call.answeredAt)
              ? "a session is throttled, but no failure of the upstream was reported"
              : undefined;
        if (fault !== undefined) found.add(session.host, call.answeredAt, fault, [session.calls[0], call]);
      }
    }
    return found;
  },
};

/** An instance may commit the arrival of a first call that does not wait this much later. */
const LATE_ARRIVAL_MS = 1_000;

function judgeRenewals(history: History, session: Session, doubtedFrom: number, found: Findings): void {
  for (const slot of session.slots) {
    const end = certainEnd(history, slot);
    for (const call of slot.renewals) {
      if (!isAnswered(call) || call.answeredAt >= doubtedFrom) continue;
      found.judged++;
      const isExcused = call.answeredAt >= end || history.faults.hasClockJump(call.sentAt, call.answeredAt);
      if (call.httpStatus !== 410 || isExcused) continue;
      const detail = `a renewal is refused ${Math.round(end - call.answeredAt)} ms before the lease can have ended`;
      found.add(session.host, call.answeredAt, detail, [slot.grants[0], call]);
    }
  }
}

function timeoutFault(history: History, session: Session, call: Call, index: number): string | undefined {
  const { host, askedAt, calls, cancels, slots } = session;
  const facts = history.facts.of(host);
  const { transitMs = Number.POSITIVE_INFINITY } = facts;
  const { answeredAt: at, reason } = call;
  if (reason === "deadline" || reason === "idle") {
    const waited = at - askedAt;
    const maxWaitMs = calls[0]?.maxWaitMs ?? facts.least("maxWaitMs", askedAt, at) ?? 0;
    const idleMs = (facts.least("sessionIdleSeconds", askedAt, at) ?? 0) * 1000;
    // The service counts the silence from before its answer arrived until the next call has arrived.
    const silence = longestSilence(history, session, index) + 2 * transitMs;
    const isEarly = waited + transitMs < maxWaitMs && silence < idleMs;
    if (!isEarly || history.faults.hasClockJump(askedAt, at)) return undefined;
    return `a session times out after ${Math.round(waited)} of ${maxWaitMs} ms, and its client was not idle`;
  }
  if (reason === "canceled" && !cancels.some(({ sentAt }) => sentAt <= at)) {
    return "a session ends as canceled, but no client canceled it";
  }
  if (reason === "unknown-token") return "the service does not know a token that it issued";
  // A grant that no client received may have ended unnoticed.
  const mayHoldOne = slots.length > 0 || calls.some((other) => other !== call && other.sentAt <= at);
  if (reason === "released" && !mayHoldOne) return "a session ends as released before it can have had a slot";
  return undefined;
}

/** The longest time for which the service may not have known that the client was there, until the given call. */
function longestSilence({ faults, facts }: History, { host, askedAt, calls }: Session, index: number): number {
  const isFleet = facts.of(host).instances !== 1;
  const lateUntil = isFleet ? (calls.find(isAnswered)?.answeredAt ?? askedAt) + LATE_ARRIVAL_MS : askedAt;
  const windowMs = facts.of(host).least("pollWindowMs", askedAt, calls[index]?.answeredAt ?? askedAt) ?? 0;
  let [silence, last, before] = [0, askedAt, askedAt];
  for (const [position, call] of calls.slice(0, index + 1).entries()) {
    // During a fault the instance may not have received the call, or not reached the store.
    const isLate = position > 0 && call.sentAt < lateUntil;
    const isReached = isAnswered(call) && call.blockedBy !== "store" && !faults.isDelayed(last, call.answeredAt);
    const isSeen = isReached && !isLate && !(isFleet && isSentOn(call, windowMs));
    const until = isSeen ? call.sentAt : Math.min(call.answeredAt, call.gaveUpAt);
    silence = Math.max(silence, until - (isFleet ? before : last));
    if (isSeen) [before, last] = [last, Math.max(last, call.answeredAt)];
  }
  return silence;
}

/** In a fleet, an instance with an old copy of a session that another one has answers `pending` before the window ends. */
function isSentOn(call: Call, windowMs: number): boolean {
  return call.token !== undefined && isPending(call) && call.answeredAt - call.sentAt < windowMs;
}
