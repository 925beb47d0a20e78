/**
 * HIST2  A slot token belongs to one session, a session gets one slot, however often the grant is repeated, and a poll
 *     is answered about its own session. Two sessions of one request id never hold slots at the same time.
 *
 * Not promised: anything about a session that began before lost commits, or before the store's clock jumped; nothing
 * about grants that no client received. Cost: O(n).
 */
import type { History, Session, Slot } from "../history.ts";
import { certainEnd } from "../history.ts";
import { Findings, type Rule } from "../rule.ts";

export const ownership: Rule = {
  name: "HIST2",
  title: "one owner for each slot, one slot for each session",
  judge(history) {
    const found = new Findings("HIST2", history);
    for (const call of history.strays) {
      found.add(call.host ?? "", call.answeredAt, "a poll is answered with the query token of another session", [call]);
    }
    const requests = new Map<string, Slot[]>();
    for (const session of history.sessions) {
      if (session.slots.length === 0) continue;
      found.judged++;
      judgeSession(history, session, found);
      collectRequests(session, requests);
    }
    for (const slots of requests.values()) judgeRequest(history, slots, found);
    return found;
  },
};

function judgeSession({ faults }: History, session: Session, found: Findings): void {
  const [first, second] = session.slots;
  for (const slot of session.slots) {
    if (slot.session === session) continue;
    const other = slot.grants.find((call) => !session.calls.includes(call));
    const own = slot.grants.find((call) => session.calls.includes(call));
    found.add(session.host, own?.answeredAt ?? 0, "one slot is granted to two sessions", [other, own]);
  }
  const isDoubted = faults.doubtedFrom(session.askedAt) < (second?.arrivedAt ?? 0);
  if (first === undefined || second === undefined || isDoubted) return;
  found.add(session.host, second.arrivedAt, "one session is granted two slots", [first.grants[0], second.grants[0]]);
}

function collectRequests({ calls, slots, host, bucket }: Session, requests: Map<string, Slot[]>): void {
  const requestId = calls.find((call) => call.requestId !== undefined)?.requestId;
  if (requestId === undefined) return;
  const key = `${host}\n${bucket}\n${requestId}`;
  requests.set(key, [...(requests.get(key) ?? []), ...slots]);
}

function judgeRequest(history: History, slots: Slot[], found: Findings): void {
  if (slots.length < 2) return;
  const held = slots.map((slot) => ({ slot, end: certainEnd(history, slot) }));
  held.sort((a, b) => a.slot.arrivedAt - b.slot.arrivedAt);
  for (const [index, { slot }] of held.entries()) {
    const other = held[index - 1];
    if (other === undefined || other.slot.session === slot.session || other.end <= slot.arrivedAt) continue;
    const calls = [other.slot.grants[0], slot.grants[0]];
    found.add(slot.session.host, slot.arrivedAt, "one request id holds two slots at once", calls);
  }
}
