/** How many calls may be under way at once. */
export interface LaneLimits {
  readonly perHost: number;
  readonly inAll: number;
  /** Of hosts that are stuck, together. */
  readonly stuck: number;
}

/** What becomes of a call. `isStuck`: the error says that another program has the host. */
type IsStuck = (error: unknown) => boolean;

interface Lane {
  running: number;
  readonly waiting: (() => void)[];
  /** Its last call failed because another program has the host, and none has succeeded since. */
  isStuck: boolean;
}

interface Running {
  readonly lane: Lane;
  readonly startedAt: number;
}

/** A stuck host without calls for this long is forgotten: whether it is still stuck, its next call shows. */
const FORGET_MS = 30_000;
/** Calls take milliseconds. One that takes longer than this, without an answer, may wait for a lock. */
const SLOW_MS = 250;

/**
 * Bounds how many calls for hosts are under way, so that hosts whose rows another program keeps locked do not use up the pool (P7).
 *
 * LANE1 a host has at most `perHost` calls under way, and all hosts together `inAll`: the pool has more, for calls that concern no host
 * LANE2 a host is stuck while a call of it takes long, and from a failure that says so until a call succeeds or none was made for
 * `FORGET_MS`. All stuck hosts together have `stuck` calls at most, however many they are. Before they are known to be stuck they
 * may have more, until those fail.
 * LANE3 calls of a host go in order, hosts take turns, and those that are not stuck go first.
 * Cost: O(1) for each call, and O(inAll) where a stuck host waits.
 */
export class HostLanes {
  readonly #limits: LaneLimits;
  readonly #isStuck: IsStuck;
  readonly #lanes = new Map<string, Lane>();
  /** Stuck hosts without calls, and since when; oldest first. */
  readonly #idle = new Map<string, number>();
  /** Under way, oldest first. */
  readonly #running = new Set<Running>();
  /** Lanes with calls that wait and may go as soon as there is room. */
  readonly #ready = new Set<Lane>();
  readonly #held = new Set<Lane>();
  #waiting = 0;
  #waits = 0;

  constructor(limits: LaneLimits, isStuck: IsStuck = () => false) {
    this.#limits = limits;
    this.#isStuck = isStuck;
  }

  /** Calls that wait for their turn: now, and how many had to so far. */
  get counts(): { readonly waiting: number; readonly waits: number } {
    return { waiting: this.#waiting, waits: this.#waits };
  }

  /** Hosts that are kept in mind: with calls, or stuck. */
  get hosts(): number {
    return this.#lanes.size;
  }

  /** Runs a call of a host when its lane has room. */
  async run<T>(host: string, call: () => Promise<T>): Promise<T> {
    this.#forget();
    const lane = this.#laneOf(host);
    const turn = this.#turn(lane);
    // No pause where none is needed: CONNECT1.
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

  /** No call of the host is left. */
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

  /** Resolves when the call may go. */
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

  /** Puts the lane where its next call waits; it stands behind the other hosts there. */
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

  /** Calls under way that are slow, or belong to stuck hosts. */
  #countHeld(): number {
    const slowSince = performance.now() - SLOW_MS;
    let count = 0;
    for (const { lane, startedAt } of this.#running) if (lane.isStuck || startedAt <= slowSince) count++;
    return count;
  }
}
