/**
 * HIST4  A session ends once, and no later answer contradicts its end:
 *     - after `timeout` or `throttled` it is neither pending nor granted;
 *     - after its grant had arrived it is not pending again, and it does not time out while its client certainly holds
 *       the slot;
 *     - after an acknowledged release or cancellation it is not granted, and the slot cannot be renewed; nor can it be
 *       renewed after its lease ended;
 *     - the first call is not answered with a grant unless it says how long it waits.
 *
 * "After" means that the later call was sent when the earlier answer had arrived. A release or a cancellation is
 * acknowledged before its commit, so it counts only `promptMs` later, without a fault in between; and only until the
 * session's deadline, because the service may then answer from its memory. One `pending` contradicts
 * nothing: an instance that finds that another one has the session answers so, and the next call gets the end. Nor does
 * `pending` because of the store, or during a fault. Not promised: anything about sessions before lost commits or a jump of the store's clock. Cost: O(n log n).
 */
import { type Call, isAnswered, isDone, isPending } from "../call.ts";
import { certainEnd, type History, latestLeaseEnd, type Session, type Slot } from "../history.ts";
import { Findings, type Rule } from "../rule.ts";

export const ends: Rule = {
  name: "HIST4",
  title: "no answer contradicts an end",
  judge(history) {
    const found = new Findings("HIST4", history);
    for (const session of history.sessions) {
      found.judged++;
      new SessionEnds(history, session, found).judge();
    }
    return found;
  },
};

class SessionEnds {
  readonly #history: History;
  readonly #session: Session;
  readonly #found: Findings;
  /** The calls with an answer, in the order of sending. Answers after this time are in doubt. */
  readonly #calls: readonly Call[];
  readonly #doubtedFrom: number;
  readonly #promptMs: number | undefined;

  constructor(history: History, session: Session, found: Findings) {
    this.#history = history;
    this.#session = session;
    this.#found = found;
    this.#doubtedFrom = history.faults.doubtedFrom(session.askedAt);
    this.#calls = session.calls.filter(({ answeredAt }) => answeredAt < this.#doubtedFrom);
    this.#promptMs = history.facts.of(session.host).promptMs;
  }

  judge(): void {
    for (const call of this.#calls) {
      if (call.result === "granted" && call.token === undefined && !(call.waitMs > 0)) {
        this.#add(call, "a first call that does not wait is answered with a grant", call);
      }
    }
    this.#afterEnd();
    for (const slot of this.#session.slots) {
      this.#whileHeld(slot);
      this.#afterRelease(slot);
      this.#renewed(slot);
    }
    this.#afterCancel();
  }

  #afterEnd(): void {
    const end = earliest(this.#calls.filter(({ result }) => result === "timeout" || result === "throttled"));
    if (end === undefined) return;
    for (const call of this.#calls) {
      if (call.sentAt > end.answeredAt && this.#isContrary(call, end.answeredAt)) {
        this.#add(call, `a session that ended as ${end.result} is ${call.result} afterwards`, end, call);
      }
    }
  }

  #whileHeld(slot: Slot): void {
    const end = certainEnd(this.#history, slot);
    for (const call of this.#calls) {
      if (call.sentAt <= slot.arrivedAt) continue;
      const isLost = call.result === "timeout" || call.result === "throttled";
      if (this.#isSurelyPending(call, slot.arrivedAt))
        this.#add(call, "a session is pending after its grant had arrived", slot.grants[0], call);
      else if (isLost && call.answeredAt < end) {
        this.#add(call, `a session ends as ${call.result} while its client holds the slot`, slot.grants[0], call);
      }
    }
  }

  #afterRelease(slot: Slot): void {
    const release = earliest(slot.releases.filter(isDone));
    if (release === undefined) return;
    for (const call of slot.grants) {
      if (this.#isSettled(release, call) && call.answeredAt < this.#deadline()) {
        this.#add(call, "a slot is granted again after its release", release, call);
      }
    }
    for (const call of slot.renewals) {
      if (isDone(call) && this.#isSettled(release, call)) {
        this.#add(call, "a slot is renewed after its release", release, call);
      }
    }
  }

  #renewed(slot: Slot): void {
    const { transitMs } = this.#history.facts.of(this.#session.host);
    if (transitMs === undefined) return;
    for (const [index, call] of slot.renewals.entries()) {
      if (!isDone(call) || call.answeredAt >= this.#doubtedFrom) continue;
      const end = latestLeaseEnd(this.#history, {
        ...slot,
        grants: slot.grants.filter(({ sentAt }) => sentAt < call.sentAt),
        renewals: slot.renewals.slice(0, index),
      });
      if (call.sentAt > end + transitMs)
        this.#add(call, "a slot is renewed after its lease ended", slot.grants[0], call);
    }
  }

  #afterCancel(): void {
    const cancel = earliest(this.#session.cancels.filter(({ result }) => result === "canceled"));
    if (cancel === undefined) return;
    for (const call of this.#calls) {
      if (
        this.#isContrary(call, cancel.answeredAt) &&
        this.#isSettled(cancel, call) &&
        call.answeredAt < this.#deadline()
      ) {
        this.#add(call, `a session is ${call.result} after its cancellation`, cancel, call);
      }
    }
  }

  #isContrary(call: Call, endedAt: number): boolean {
    return call.result === "granted" || this.#isSurelyPending(call, endedAt);
  }

  /** The second `pending` after an end, both from an instance that reached the store. */
  #isSurelyPending(call: Call, endedAt: number): boolean {
    if (!isPending(call) || this.#history.faults.isDelayed(call.sentAt, call.answeredAt)) return false;
    const isBefore = ({ sentAt, answeredAt }: Call) => sentAt > endedAt && answeredAt <= call.sentAt;
    return this.#calls.some((other) => isPending(other) && isBefore(other));
  }

  /** Whether the call was sent when the acknowledged one had certainly taken effect. */
  #isSettled(acknowledged: Call, call: Call): boolean {
    const from = acknowledged.answeredAt;
    if (this.#promptMs === undefined || call.sentAt <= from + this.#promptMs) return false;
    return call.answeredAt < this.#doubtedFrom && !this.#history.faults.isDelayed(from, call.answeredAt);
  }

  /** The session's deadline, at the earliest; `-Infinity` if it is unknown. */
  #deadline(): number {
    const { host, askedAt, calls } = this.#session;
    const own = calls.find(({ maxWaitMs }) => maxWaitMs !== undefined)?.maxWaitMs;
    const { endsAt } = this.#history.lines;
    return askedAt + (own ?? this.#history.facts.of(host).least("maxWaitMs", askedAt, endsAt) ?? -Infinity);
  }

  #add({ answeredAt }: Call, detail: string, ...calls: (Call | undefined)[]): void {
    this.#found.add(this.#session.host, answeredAt, detail, calls);
  }
}

function earliest(calls: readonly Call[]): Call | undefined {
  let first: Call | undefined;
  for (const call of calls) if (isAnswered(call) && call.answeredAt < (first?.answeredAt ?? Infinity)) first = call;
  return first;
}
