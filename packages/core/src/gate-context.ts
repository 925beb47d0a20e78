/** What the gates of one owner share: the clock, its timers, the counters, and whoever keeps track of idle gates. */
import { type Clock, realClock } from "./clock.ts";
import { type Deadlines, deadlinesOf } from "./deadlines.ts";
import type { GateMap } from "./gate-map.ts";

/** Since the beginning, sweeps or not. */
export interface Counters {
  acquired: number;
  released: number;
  expired: number;
  timedOut: number;
  aborted: number;
  /** Refused: closed, queue full, or too wide after a shrink. */
  rejected: number;
}

export class GateContext {
  readonly clock: Clock;
  readonly deadlines: Deadlines;
  readonly home: GateMap<unknown> | undefined;
  readonly counters: Counters = { acquired: 0, released: 0, expired: 0, timedOut: 0, aborted: 0, rejected: 0 };
  /** In all the queues together. */
  waiting = 0;

  constructor(clock: Clock = realClock, home?: GateMap<unknown>) {
    this.clock = clock;
    this.deadlines = deadlinesOf(clock);
    this.home = home;
  }
}
