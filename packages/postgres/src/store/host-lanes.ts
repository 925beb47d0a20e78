import { isLocked } from "./database-error.ts";

/** Something that the store asks the database about one host. */
export interface HostRequest {
  readonly host: string;
  /** It may be sent in one call with requests of other hosts. */
  readonly isShareable: boolean;
}

/**
 * Sends requests of different hosts in one call, in the order of the hosts. If the call fails, all of them have failed, or
 * their outcome is not known.
 */
type Send<Request, Reply> = (requests: readonly Request[]) => Promise<readonly Reply[]>;

interface Waiting<Request, Reply> {
  readonly request: Request;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: unknown) => void;
  /** It was part of a call that failed. */
  mustBeAlone: boolean;
}

interface Lane<Request, Reply> {
  readonly host: string;
  running: number;
  readonly waiting: Waiting<Request, Reply>[];
  /** The last call failed because another program keeps the host locked, and none has succeeded since. */
  isStuck: boolean;
}

interface Running<Request, Reply> {
  readonly lanes: readonly Lane<Request, Reply>[];
  readonly startedAt: number;
}

/** How many calls for one host may run at once. The engine needs only one commit and one read. */
const CALLS_PER_HOST = 2;
/** How many calls all locked hosts may have together: enough to find out when one of them is free. */
const STUCK_CALLS = 3;
/**
 * How many requests may share a call. They are one transaction, so each of them takes as long as all. More of them save
 * little.
 */
const REQUESTS_PER_CALL = 16;
/** A stuck host without calls for this long is removed. Its next call shows whether it is still stuck. */
const IDLE_MS = 30_000;
/** Calls take milliseconds. A call that runs longer than this may be waiting for a lock. */
const SLOW_MS = 250;

/**
 * Decides which requests for hosts are sent to the database now, and which of them share a call. A call costs the
 * service and the database more than most requests, so a service with many hosts is faster if they share calls. Hosts
 * whose rows another program keeps locked must not use up the connections (P7).
 *
 * LANE1 A host has at most `#perHost` requests in progress, and all hosts together at most `#inAll` calls. There are more
 *   connections, for calls that belong to no host.
 * LANE2 A host is stuck while one of its calls is slow. After an error that means "locked", it stays stuck until a call
 *   succeeds or until it had no calls for `IDLE_MS`. All stuck hosts together have at most `#stuck` calls, regardless
 *   of their number. Before they are known to be stuck they may have more, until those calls fail.
 * LANE3 The requests of a host are sent in order. Hosts take turns, and hosts that are not stuck go first.
 * LANE4 Shareable requests that are made in one job, or that waited, share calls of at most `REQUESTS_PER_CALL`. A
 *   request for a stuck host is sent alone. If a call with several requests fails, each is sent again, alone. So one
 *   host cannot make the requests of the others fail.
 * Cost: O(1) for each request, and for each shared call a pass over the waiting hosts until it is full; O(#inAll) if a
 *   stuck host waits.
 */
export class HostLanes<Request extends HostRequest, Reply> {
  readonly #perHost: number;
  readonly #inAll: number;
  readonly #stuck: number;
  readonly #send: Send<Request, Reply>;
  readonly #lanes = new Map<string, Lane<Request, Reply>>();
  /** Stuck hosts without calls, with the time since then; oldest first. */
  readonly #idle = new Map<string, number>();
  /** Calls in progress, oldest first. */
  readonly #running = new Set<Running<Request, Reply>>();
  /** Lanes with waiting requests that may start as soon as there is room. */
  readonly #ready = new Set<Lane<Request, Reply>>();
  readonly #held = new Set<Lane<Request, Reply>>();
  #waiting = 0;
  #waits = 0;
  #isAdvancing = false;

  /**
   * `calls`: how many calls can be made at once. One of them is reserved for beats and checks, which belong to no host.
   * With few calls, stuck hosts get at most half of them.
   */
  constructor(calls: number, send: Send<Request, Reply>) {
    this.#inAll = Math.max(1, calls - 1);
    this.#perHost = Math.min(CALLS_PER_HOST, this.#inAll);
    this.#stuck = Math.max(1, Math.min(STUCK_CALLS, Math.floor(this.#inAll / 2)));
    this.#send = send;
  }

  /** Requests that wait for their turn: now, and in total. */
  get counts(): { readonly waiting: number; readonly waits: number } {
    return { waiting: this.#waiting, waits: this.#waits };
  }

  /** Sends a request when its lane has room: at the end of this job at the earliest (LANE4). */
  run(request: Request): Promise<Reply> {
    this.#removeIdle();
    const lane = this.#laneOf(request.host);
    if (lane.waiting.length > 0 || !this.#hasRoom(lane)) this.#waits++;
    this.#waiting++;
    return new Promise((resolve, reject) => {
      lane.waiting.push({ request, resolve, reject, mustBeAlone: false });
      this.#line(lane);
      if (this.#isAdvancing) return;
      this.#isAdvancing = true;
      queueMicrotask(() => this.#advance());
    });
  }

  #removeIdle(): void {
    const before = performance.now() - IDLE_MS;
    for (const [host, since] of this.#idle) {
      if (since > before) return;
      this.#idle.delete(host);
      this.#lanes.delete(host);
    }
  }

  #laneOf(host: string): Lane<Request, Reply> {
    this.#idle.delete(host);
    let lane = this.#lanes.get(host);
    if (lane === undefined) {
      lane = { host, running: 0, waiting: [], isStuck: false };
      this.#lanes.set(host, lane);
    }
    return lane;
  }

  #hasRoom(lane: Lane<Request, Reply>): boolean {
    if (lane.running >= this.#perHost || this.#running.size >= this.#inAll) return false;
    return !this.#isHeld(lane) || this.#countHeld() < this.#stuck;
  }

  /** Puts the lane into the queue of its next request, behind the other hosts. */
  #line(lane: Lane<Request, Reply>): void {
    this.#ready.delete(lane);
    this.#held.delete(lane);
    if (lane.waiting.length === 0 || lane.running >= this.#perHost) return;
    (this.#isHeld(lane) ? this.#held : this.#ready).add(lane);
  }

  /** Starts what has room. */
  #advance(): void {
    this.#isAdvancing = false;
    while (this.#ready.size > 0 && this.#running.size < this.#inAll) {
      const lanes = this.#nextTogether();
      if (lanes.length > 0) void this.#start(lanes);
    }
    for (const lane of this.#held) {
      if (this.#running.size >= this.#inAll || this.#countHeld() >= this.#stuck) return;
      void this.#start([lane]);
    }
  }

  /** The lanes whose next requests share the next call. Empty: the next lane turned out to be held. */
  #nextTogether(): readonly Lane<Request, Reply>[] {
    const lanes: Lane<Request, Reply>[] = [];
    for (const lane of this.#ready) {
      if (this.#isHeld(lane)) this.#line(lane);
      else if (isShareable(lane)) lanes.push(lane);
      else if (lanes.length === 0) return [lane];
      if (lanes.length === REQUESTS_PER_CALL) break;
    }
    return lanes.sort((a, b) => (a.host < b.host ? -1 : 1));
  }

  /** Sends the next request of each lane in one call. */
  async #start(lanes: readonly Lane<Request, Reply>[]): Promise<void> {
    const running = { lanes, startedAt: performance.now() };
    this.#running.add(running);
    const sent = lanes.map((lane) => this.#take(lane));
    try {
      const replies = await this.#send(sent.map(({ request }) => request));
      sent.forEach(({ resolve }, at) => resolve(replies[at] as Reply));
      for (const lane of lanes) lane.isStuck = false;
    } catch (error) {
      this.#fail(lanes, sent, error);
    }
    this.#running.delete(running);
    for (const lane of lanes) {
      lane.running--;
      this.#line(lane);
    }
    this.#advance();
    for (const lane of lanes) if (lane.running === 0 && lane.waiting.length === 0) this.#rest(lane);
  }

  #take(lane: Lane<Request, Reply>): Waiting<Request, Reply> {
    const next = lane.waiting.shift() as Waiting<Request, Reply>;
    this.#waiting--;
    lane.running++;
    this.#line(lane);
    return next;
  }

  /** LANE4: what failed together is sent again, ahead of the other requests of its host. */
  #fail(lanes: readonly Lane<Request, Reply>[], sent: readonly Waiting<Request, Reply>[], error: unknown): void {
    const [first] = sent as [Waiting<Request, Reply>];
    if (lanes.length === 1) {
      (lanes[0] as Lane<Request, Reply>).isStuck ||= isLocked(error);
      first.reject(error);
      return;
    }
    lanes.forEach((lane, at) => {
      const again = sent[at] as Waiting<Request, Reply>;
      again.mustBeAlone = true;
      lane.waiting.unshift(again);
      this.#waiting++;
    });
  }

  /** The host has no requests left. */
  #rest({ host, isStuck }: Lane<Request, Reply>): void {
    if (isStuck) this.#idle.set(host, performance.now());
    else this.#lanes.delete(host);
  }

  #isHeld(lane: Lane<Request, Reply>): boolean {
    if (lane.isStuck) return true;
    if (lane.running === 0) return false;
    const slowSince = performance.now() - SLOW_MS;
    for (const running of this.#running) {
      if (running.startedAt > slowSince) return false;
      if (running.lanes.includes(lane)) return true;
    }
    return false;
  }

  /** The number of running calls that are slow or belong to stuck hosts. */
  #countHeld(): number {
    const slowSince = performance.now() - SLOW_MS;
    let count = 0;
    for (const { lanes, startedAt } of this.#running) {
      if (startedAt <= slowSince || lanes.some(({ isStuck }) => isStuck)) count++;
    }
    return count;
  }
}

function isShareable<Request extends HostRequest, Reply>({ waiting }: Lane<Request, Reply>): boolean {
  const [next] = waiting;
  return next?.request.isShareable === true && !next.mustBeAlone;
}
