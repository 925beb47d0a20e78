/**
 * HIST7  Inside a line, the requests of one class and bucket with the same keys, waiters are served in the order of their arrival: a
 *     session whose poll is open is not overtaken by one of its line that began after the first had certainly arrived. In a fleet an offer may lapse; there
 *     a session is not overtaken twice by sessions that arrive more than `promptMs` apart.
 *
 * The order of two grants is that of their fences. The poll of the session must be open for the whole time in which the
 * other may have been granted: from its last `pending` answer, but at most `promptMs` before it arrived.
 *
 * Not promised: the order of sessions whose first calls overlap or are less than `promptMs` apart (instances estimate the
 * store's clock), nor anything about hosts whose waiter pool may have been full, nor during a fault. Cost: O(n w) for n
 * grants and w sessions of a bucket that wait at a time.
 */
import { isAnswered, isPending } from "../call.ts";
import { groupBy } from "../group-by.ts";
import type { History, Session, Slot } from "../history.ts";
import { Findings, type Rule } from "../rule.ts";
import type { Span } from "../spans.ts";
import { lineOf, mayFillPool, openPolls, type Timing, timingOf } from "../waiting.ts";

export const arrivalOrder: Rule = {
  name: "HIST7",
  title: "first come, first served inside a class and bucket",
  judge(history) {
    const found = new Findings("HIST7", history);
    for (const [host, sessions] of history.byHost()) {
      const timing = timingOf(history, host);
      const { instances } = history.facts.of(host);
      if (timing === undefined || instances === undefined) {
        found.unjudged.add("the configuration, instances, transitMs or promptMs of a host is unknown");
      } else if (mayFillPool(history, host, sessions)) found.unjudged.add("the waiter pool of a host may be full");
      else {
        const graceMs = instances > 1 ? timing.promptMs : 0;
        for (const ofLine of groupBy(sessions, keyedLineOf).values()) {
          judgeLine(history, ofLine, timing, graceMs, found);
        }
      }
    }
    return found;
  },
};

/** Keys hold back single requests. Those with the same keys are served in the order of their arrival, too. */
function keyedLineOf(session: Session): string {
  return JSON.stringify([lineOf(session), Object.entries(session.keys).toSorted(([a], [b]) => (a < b ? -1 : 1))]);
}

/** A session that may be overtaken. */
interface Waiter {
  readonly session: Session;
  /** By when it had certainly arrived. */
  readonly arrivedBy: number;
  readonly polls: readonly Span[];
  readonly fence: number;
  overtaken: { readonly by: Slot; readonly at: number } | undefined;
}

function judgeLine(history: History, sessions: readonly Session[], timing: Timing, graceMs: number, found: Findings) {
  const waiters = sessions
    .map((session) => waiterOf(session, timing))
    .filter(({ polls }) => polls.length > 0)
    .sort((a, b) => a.arrivedBy - b.arrivedBy);
  const granted = sessions.flatMap(({ slots }) => slots).sort((a, b) => a.session.askedAt - b.session.askedAt);
  let next = 0;
  let waiting: Waiter[] = [];
  for (const slot of granted) {
    found.judged++;
    const { askedAt } = slot.session;
    for (
      let one = waiters[next];
      one !== undefined && one.arrivedBy + timing.promptMs < askedAt;
      one = waiters[++next]
    ) {
      waiting.push(one);
    }
    waiting = waiting.filter(({ polls }) => (polls.at(-1)?.until ?? 0) > askedAt);
    for (const waiter of waiting) judgePair(history, waiter, slot, timing, graceMs, found);
  }
}

function judgePair(history: History, waiter: Waiter, slot: Slot, timing: Timing, graceMs: number, found: Findings) {
  const { session, fence, polls, overtaken } = waiter;
  if (slot.session === session || fence <= slot.fence) return;
  const from = decidedAfter(slot, timing);
  const isOpen = polls.some((poll) => poll.from <= from && poll.until >= slot.arrivedAt);
  if (!isOpen || history.faults.isDelayed(Math.min(from, overtaken?.at ?? from), slot.arrivedAt)) return;
  if (graceMs > 0) {
    waiter.overtaken ??= { by: slot, at: slot.arrivedAt };
    if (from <= waiter.overtaken.at + graceMs) return;
  }
  const other = overtaken?.by.grants[0];
  const detail = "a session is overtaken inside its bucket by one that began later";
  const calls = [session.calls[0], other === slot.grants[0] ? undefined : other, slot.session.calls[0], slot.grants[0]];
  found.add(session.host, slot.arrivedAt, detail, calls);
}

/** When the slot was granted, at the earliest. */
function decidedAfter({ session, arrivedAt }: Slot, { promptMs }: Timing): number {
  const pending = session.calls.filter((call) => isPending(call) && call.answeredAt <= arrivedAt);
  return Math.max(session.askedAt, pending.at(-1)?.sentAt ?? 0, arrivedAt - promptMs);
}

function waiterOf(session: Session, timing: Timing): Waiter {
  const { calls, slots } = session;
  const first = calls.find(isAnswered);
  const arrivedBy = first === undefined ? Infinity : Math.min(first.answeredAt, first.sentAt + timing.transitMs);
  const fence = Math.min(...slots.map((slot) => slot.fence));
  return { session, arrivedBy, polls: openPolls(session, timing), fence, overtaken: undefined };
}
