import { type Call, isAnswered } from "./call.ts";
import type { Config } from "./facts.ts";
import { ACKNOWLEDGED_MS, type History, latestEffect, type Session, type Slot, waitedUntil } from "./history.ts";

/** An opening of a host's breaker that a client knows of, because its session ended as `throttled`. */
export interface Opening {
  readonly call: Call;
  readonly session: Session;
  /** When the breaker opened, at the earliest: when a report that may have opened it was sent. */
  readonly from: number;
  /** When it had opened, at the latest: the answer had arrived. */
  readonly by: number;
}

/** A call that may have opened the breaker, and when, at the earliest. */
interface Cause {
  readonly call: Call;
  readonly from: number;
}

/** How often a call arrives at most. */
const DELIVERIES = 2;

/** What is known about the breaker of a host, from the answers to its clients and from their reports. */
export class Breaker {
  readonly #history: History;
  readonly #host: string;
  readonly #sessions: readonly Session[];
  readonly #reports: readonly Call[];
  readonly #orders: readonly Call[];
  /** In the order of `by`. */
  readonly #openings: readonly Opening[];
  #causedFrom: number | undefined;

  constructor(history: History, host: string, sessions: readonly Session[]) {
    this.#history = history;
    this.#host = host;
    this.#sessions = sessions;
    this.#reports = history.reports(host);
    this.#orders = history.lines.calls.filter((call) => call.name === "breaker" && call.host === host);
    this.#openings = sessions.flatMap((session) => this.#openingOf(session) ?? []).sort((a, b) => a.by - b.by);
  }

  /**
   * The opening that was certainly in force, or had been, when the slot was granted; the latest one. None if an operator may have
   * closed the breaker since, if commits were lost, or if a clock was wrong.
   */
  before(slot: Slot): Opening | undefined {
    const grantedFrom = waitedUntil(this.#history, slot.session, slot.arrivedAt);
    let latest: Opening | undefined;
    for (const opening of this.#openings) {
      if (opening.by > grantedFrom) break;
      if (opening.from > (latest?.from ?? Number.NEGATIVE_INFINITY)) latest = opening;
    }
    return latest !== undefined && this.#isSure(latest, slot.arrivedAt) ? latest : undefined;
  }

  /** For how long the breaker stayed open for every session that began until `at`; one with a short time may have closed it. */
  leastOpenMs(opening: Opening, at: number): number {
    const configured = 1000 * (this.#history.facts.of(this.#host).least("openSeconds", opening.from, at) ?? 0);
    const own = this.#sessions.filter(({ askedAt }) => askedAt <= at).map(ownOpenMs);
    return Math.min(configured, ...own.map((ms) => ms ?? configured));
  }

  /**
   * Whether a reported success may have closed the breaker by a time: any one that took effect after `halfOpenFrom`, and one
   * of a probe, also if another error had opened the breaker again.
   */
  mayBeClosed({ from }: Opening, halfOpenFrom: number, by: number): boolean {
    const successes = this.#reports.filter((call) => isSuccess(call) && call.sentAt <= by);
    return successes.some((call) => this.#effectBy(call) >= (this.#mayBeProbe(call) ? from : halfOpenFrom));
  }

  /** A probe was granted after something had opened the breaker. */
  #mayBeProbe({ token = "" }: Call): boolean {
    const slot = this.#history.slots.get(token);
    this.#causedFrom ??= Math.min(...this.#causes(0, this.#history.lines.endsAt).map(({ from }) => from));
    return slot !== undefined && slot.arrivedAt >= this.#causedFrom;
  }

  #isSure({ from, session }: Opening, at: number): boolean {
    const { faults } = this.#history;
    const isClosed = this.#orders.some(
      (call) => call.set["state"] === "closed" && call.sentAt <= at && this.#effectBy(call) >= from,
    );
    return !isClosed && faults.doubtedFrom(session.askedAt) > at && !faults.hasClockJump(from, at);
  }

  #openingOf(session: Session): Opening | undefined {
    const call = session.calls.find(({ result }) => result === "throttled");
    if (call === undefined) return undefined;
    const { answeredAt: by, retryAfterMs = 0 } = call;
    const facts = this.#history.facts.of(this.#host);
    const openMs =
      ownOpenMs(session) ?? 1000 * (facts.most("openSeconds", session.askedAt, by) ?? Number.POSITIVE_INFINITY);
    // When the session ended, at the earliest. The breaker was open then, and for at least this much longer.
    const endedFrom = waitedUntil(this.#history, session, by);
    const openedAfter = endedFrom + Math.max(0, retryAfterMs - 1000) - openMs;
    const causes = this.#causes(session.askedAt, by).filter((cause) => this.#effectBy(cause.call) >= openedAfter);
    if (causes.length === 0) return undefined;
    return { call, session, by, from: Math.max(openedAfter, Math.min(...causes.map((cause) => cause.from))) };
  }

  /** The calls that may have opened the breaker by a time: an operator's, or a report of an error if there were enough. */
  #causes(from: number, by: number): Cause[] {
    const configs = this.#history.facts.of(this.#host).during(from, by);
    const isError = ({ reported }: Call) =>
      configs.some(({ breaker }) => breaker.protectHttpCodes.includes(reported ?? 0));
    const errors = this.#reports.filter((call) => call.sentAt <= by && isError(call));
    const fewest = Math.min(...configs.map(fewestErrors));
    // A report that was sent first may take effect last, but enough of them had been sent. A report counts each time it
    // arrives, and the network may deliver it twice.
    const enough = errors[Math.ceil(fewest / DELIVERIES) - 1];
    const opened = this.#orders.filter((call) => call.set["state"] === "open" && call.sentAt <= by);
    return [
      ...opened.map((call) => ({ call, from: call.sentAt })),
      ...(enough === undefined ? [] : errors.map((call) => ({ call, from: Math.max(call.sentAt, enough.sentAt) }))),
    ];
  }

  #effectBy(call: Call): number {
    const { faults, facts } = this.#history;
    const { transitMs = Number.POSITIVE_INFINITY, promptMs = Number.POSITIVE_INFINITY } = facts.of(this.#host);
    const by =
      (isAnswered(call) ? call.answeredAt : latestEffect(this.#history, this.#host, call)) +
      ACKNOWLEDGED_MS +
      transitMs;
    return faults.isDelayed(call.sentAt, by) ? faults.over(by) + promptMs : by;
  }
}

function ownOpenMs({ calls }: Session): number | undefined {
  return calls.find(({ openMs }) => openMs !== undefined)?.openMs;
}

function isSuccess({ reported = 0 }: Call): boolean {
  return reported >= 200 && reported < 400;
}

/** With fewer errors the breaker cannot open. */
function fewestErrors({ breaker }: Config): number {
  const { consecutiveErrors, minSamples, errorRatioPercent, fastMinSamples, fastErrorRatioPercent } = breaker;
  const inRow = consecutiveErrors > 0 ? consecutiveErrors : Infinity;
  return Math.max(
    1,
    Math.min(inRow, ofRatio(minSamples, errorRatioPercent), ofRatio(fastMinSamples, fastErrorRatioPercent)),
  );
}

function ofRatio(samples: number, percent: number): number {
  return samples > 0 ? Math.ceil((samples * percent) / 100) : Infinity;
}
