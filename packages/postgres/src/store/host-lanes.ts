/** How many calls may run at once. */
export interface LaneLimits {
  readonly perHost: number;
  readonly inAll: number;
  /** For all stuck hosts together. */
  readonly stuck: number;
}

/** Whether the error means that another program keeps the host locked. */
type IsStuck = (error: unknown) => boolean;

interface Lane {
  running: number;
  readonly waiting: (() => void)[];
  /** The last call failed because another program keeps the host locked, and none has succeeded since. */
  isStuck: boolean;
}

interface Running {
  readonly lane: Lane;
  readonly startedAt: number;
}

/** A stuck host without calls for this long is forgotten. Its next call shows whether it is still stuck. */
const FORGET_MS = 30_000;
/** Calls take milliseconds. A call that runs longer than this may be waiting for a lock. */
const SLOW_MS = 250;

/**
 * Limits how many calls for hosts run at once, so that hosts whose rows another program keeps locked do not use up the
 * pool (P7).
 *
 * LANE1 A host has at most `perHost` calls in progress, and all hosts together at most `inAll`. The pool has more
 *   connections, for calls that belong to no host.
 * LANE2 A host is stuck while one of its calls is slow. After an error that means "locked", it stays stuck until a call
 *   succeeds or until it had no calls for `FORGET_MS`. All stuck hosts together have at most `stuck` calls, regardless
 *   of their number. Before they are known to be stuck they may have more, until those calls fail.
 * LANE3 The calls of a host run in order. Hosts take turns, and hosts that are not stuck go first.
 * Cost: O(1) for each call; O(inAll) if a stuck host waits.
 */
export class HostLanes {
  readonly #limits: LaneLimits;
  readonly #isStuck: IsStuck;
  readonly #lanes = new Map<string, Lane>();
  /** Stuck hosts without calls, with the time since then; oldest first. */
  readonly #idle = new Map<string, number>();
  /** Calls in progress, oldest first. */
  readonly #running = new Set<Running>();
  /** Lanes with waiting calls that may start as soon as there is room. */
  readonly #ready = new Set<Lane>();
  readonly #held = new Set<Lane>();
  #waiting = 0;
  #waits = 0;

  constructor(limits: LaneLimits, isStuck: IsStuck = () => false) {
    this.#limits = limits;
    this.#isStuck = isStuck;
  }

  /** Calls that wait for their turn: now, and in total. */
  get counts(): { readonly waiting: number; readonly waits: number } {
    return { waiting: this.#waiting, waits: this.#waits };
  }

  /** The number of hosts in memory: those with calls, and stuck ones. */
  get hosts(): number {
    return this.#lanes.size;
  }

  /** Runs a call of a host when its lane has room. */
  async run<T>(host: string, call: () => Promise<T>): Promise<T> {
    this.#forget();
    const lane = this.#laneOf(host);
    const turn = this.#turn(lane);
    // No `await` if it is not needed: CONNECT1.
    const running = turn instanceof Promise ? await turn : turn;
    try {
      const result = await call();
      lane.isStuck = false;
      return result;
    } catch (error) {
      lane.isStuck ||= this.#isStuck(error);
      throw error;
    } finally {
      this.#running.delete(running);
      lane.running--;
      this.#line(lane);
      this.#advance();
      if (lane.running === 0 && lane.waiting.length === 0) this.#rest(host, lane);
    }
  }

  /** The host has no calls left. */
  #rest(host: string, { isStuck }: Lane): void {
    if (isStuck) this.#idle.set(host, performance.now());
    else this.#lanes.delete(host);
  }

  #forget(): void {
    const before = performance.now() - FORGET_MS;
    for (const [host, since] of this.#idle) {
      if (since > before) return;
      this.#idle.delete(host);
      this.#lanes.delete(host);
    }
  }

  #laneOf(host: string): Lane {
    this.#idle.delete(host);
    let lane = this.#lanes.get(host);
    if (lane === undefined) {
      lane = { running: 0, waiting: [], isStuck: false };
      this.#lanes.set(host, lane);
    }
    return lane;
  }

  /** Resolves when the call may start. */
  #turn(lane: Lane): Running | Promise<Running> {
    if (this.#hasRoom(lane) && lane.waiting.length === 0) return this.#start(lane);
    this.#waits++;
    this.#waiting++;
    return new Promise((resolve) => {
      lane.waiting.push(() => resolve(this.#start(lane)));
      this.#line(lane);
    });
  }

  #hasRoom(lane: Lane): boolean {
    if (lane.running >= this.#limits.perHost || this.#running.size >= this.#limits.inAll) return false;
    return !this.#isHeld(lane) || this.#countHeld() < this.#limits.stuck;
  }

  #start(lane: Lane): Running {
    const running = { lane, startedAt: performance.now() };
    this.#running.add(running);
    lane.running++;
    return running;
  }

  /** Puts the lane into the queue of its next call, behind the other hosts. */
  #line(lane: Lane): void {
    this.#ready.delete(lane);
    this.#held.delete(lane);
    if (lane.waiting.length === 0 || lane.running >= this.#limits.perHost) return;
    (this.#isHeld(lane) ? this.#held : this.#ready).add(lane);
  }

  #advance(): void {
    const { inAll, stuck } = this.#limits;
    for (const lane of this.#ready) {
      if (this.#running.size >= inAll) return;
      if (this.#isHeld(lane)) this.#line(lane);
      else this.#next(lane);
    }
    for (const lane of this.#held) {
      if (this.#running.size >= inAll || this.#countHeld() >= stuck) return;
      this.#next(lane);
    }
  }

  #next(lane: Lane): void {
    this.#waiting--;
    lane.waiting.shift()?.();
    this.#line(lane);
  }

  #isHeld(lane: Lane): boolean {
    if (lane.isStuck) return true;
    if (lane.running === 0) return false;
    const slowSince = performance.now() - SLOW_MS;
    for (const running of this.#running) {
      if (running.startedAt > slowSince) return false;
      if (running.lane === lane) return true;
    }
    return false;
  }

  /** The number of running calls that are slow or belong to stuck hosts. */
  #countHeld(): number {
    const slowSince = performance.now() - SLOW_MS;
    let count = 0;
    for (const { lane, startedAt } of this.#running) if (lane.isStuck || startedAt <= slowSince) count++;
    return count;
  }
}
