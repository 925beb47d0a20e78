/** What the gates of one owner share: the clock, its timers, the counters, and whoever keeps track of idle gates. */
import { type Clock, realClock } from "./clock.ts";
import { type ClockDeadlines, type Deadlines, deadlinesOf } from "./deadlines.ts";
import type { Gate } from "./gate.ts";

/** Since the beginning, sweeps or not. */
export interface Counters {
  readonly acquired: number;
  readonly released: number;
  readonly expired: number;
  readonly timedOut: number;
  readonly aborted: number;
  /** Refused: closed, queue full, or too wide after a shrink. */
  readonly rejected: number;
}

/** Finds gates by name or key, and drops those that have been idle for long. */
interface GateHome {
  becameIdle(gate: Gate): void;
  becameBusy(gate: Gate): void;
}

export class GateContext implements ClockDeadlines {
  readonly clock: Clock;
  readonly timeouts: Deadlines;
  readonly leases: Deadlines;
  readonly home: GateHome | undefined;
  readonly counters: { -readonly [Name in keyof Counters]: number } = {
    acquired: 0,
    released: 0,
    expired: 0,
    timedOut: 0,
    aborted: 0,
    rejected: 0,
  };
  /** In all the queues together. */
  waiting = 0;

  constructor(clock: Clock = realClock, home?: GateHome) {
    const { timeouts, leases } = deadlinesOf(clock);
    this.clock = clock;
    this.timeouts = timeouts;
    this.leases = leases;
    this.home = home;
  }
}
