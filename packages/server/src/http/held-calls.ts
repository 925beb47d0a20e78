import type { CallSignal, FairQueue } from "@slotkeeper/queue";
import { LogThrottle } from "../log/log-throttle.ts";
import type { Logger } from "../log/logger.ts";
import type { Exchange } from "./exchange.ts";

const MOST_PER_SESSION = 16;

/**
 * The calls that are held open.
 *
 * HELD1  If a caller disconnects, the signal of the call aborts at once, and nothing is answered.
 * HELD2  When the service stops, every held call is answered with the current state, and no call is held any more.
 * HELD3  At most `limit` calls are held, on any number of connections. One more is refused.
 * HELD4  Of one session, only as many calls are held as a client may have by mistake. One more is answered at once.
 * HELD5  A call is held only while its connection is read. If its caller sends too much behind it, it is answered at
 *     once, because nothing would show that the caller has left.
 */
export class HeldCalls {
  readonly #open = new Set<HeldCall>();
  readonly #perSession = new Map<string, number>();
  readonly #limit: () => number;
  readonly #refuse: (exchange: Exchange, limit: number) => void;
  #isDraining = false;

  constructor(limit: () => number, refuse: (exchange: Exchange, limit: number) => void) {
    this.#limit = limit;
    this.#refuse = refuse;
  }

  get size(): number {
    return this.#open.size;
  }

  get isDraining(): boolean {
    return this.#isDraining;
  }

  /**
   * `atOnce` asks the same without waiting. Returns `undefined` if the caller left or was refused. `session` is set if
   * it is known.
   */
  async hold<T>(
    exchange: Exchange,
    call: (signal: CallSignal) => Promise<T>,
    atOnce: () => Promise<T>,
    session?: string,
  ): Promise<T | undefined> {
    const { leaving } = exchange;
    if (leaving === "left") return undefined;
    if (this.#isDraining || leaving === "crowded") return atOnce();
    if (session !== undefined && (this.#perSession.get(session) ?? 0) >= MOST_PER_SESSION) return atOnce();
    const limit = this.#limit();
    if (this.#open.size >= limit) {
      this.#refuse(exchange, limit);
      return undefined;
    }
    const held = new HeldCall(exchange);
    this.#open.add(held);
    if (session !== undefined) countIn(this.#perSession, session, 1);
    try {
      return await call(held);
    } catch (error) {
      if (error === LEFT) return undefined;
      if (error === AT_ONCE) return await atOnce();
      throw error;
    } finally {
      this.#open.delete(held);
      if (session !== undefined) countIn(this.#perSession, session, -1);
    }
  }

  drain(): void {
    this.#isDraining = true;
    for (const held of this.#open) held.abort(AT_ONCE);
  }
}

/** Counts by key. A key with nothing to count has no entry. */
export function countIn(counts: Map<string, number>, key: string, change: 1 | -1): void {
  const count = (counts.get(key) ?? 0) + change;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}

/**
 * The part of an `AbortSignal` that a held call needs, with one listener. The real one, with its controller, takes a
 * kilobyte, and creating it takes as long as granting a slot.
 */
class HeldCall implements CallSignal {
  #listener: (() => void) | undefined;
  reason: Error | undefined;

  constructor(exchange: Exchange) {
    exchange.onLeave((why) => this.abort(why === "left" ? LEFT : AT_ONCE));
  }

  get aborted(): boolean {
    return this.reason !== undefined;
  }

  abort(reason: Error): void {
    this.reason ??= reason;
    this.#listener?.();
  }

  addEventListener(_type: "abort", listener: () => void): void {
    this.#listener = listener;
  }

  removeEventListener(): void {
    this.#listener = undefined;
  }
}

const LEFT = new Error("the caller hung up");
const AT_ONCE = new Error("the call is not held any longer");

/** The limits of `limits.*`, as the label of the metric names them. */
export type LimitName = "connections" | "connections_per_address" | "held_polls" | "hosts";

/** When to ask again. The length of the overload is unknown, so this is a fixed time. */
const RETRY_AFTER_SECONDS = 1;
const LOG_EVERY_MS = 60_000;

/** Requests that the service refuses because of a limit: counted, answered, and logged once a minute for each limit. */
export class Refusals {
  readonly counts: { [limit in LimitName]: number } = {
    connections: 0,
    connections_per_address: 0,
    held_polls: 0,
    hosts: 0,
  };
  readonly #log: Logger;
  readonly #throttles = new Map<LimitName, LogThrottle>();

  constructor(log: Logger) {
    this.#log = log;
  }

  count(limit: LimitName, most: number): void {
    this.counts[limit]++;
    let throttle = this.#throttles.get(limit);
    if (throttle === undefined) {
      throttle = new LogThrottle({ burst: 1, everyMs: LOG_EVERY_MS });
      this.#throttles.set(limit, throttle);
    }
    const unlogged = throttle.take();
    if (unlogged !== undefined) this.#log.warn("limit reached", { limit, most, unlogged });
  }

  /** Whether a call about this host was refused, because the service knows as many hosts as it may. */
  refusesHost(exchange: Exchange, host: string, { queue, live }: HostCount): boolean {
    const most = live.limits.hosts;
    if (queue.hostCount < most || queue.glance(host) !== undefined) return false;
    this.refuse(exchange, "hosts", most);
    return true;
  }

  refuse(exchange: Exchange, limit: LimitName, most: number): void {
    this.count(limit, most);
    answerTooBusy(exchange, limit);
  }
}

interface HostCount {
  readonly queue: Pick<FairQueue, "hostCount" | "glance">;
  readonly live: { readonly limits: { readonly hosts: number } };
}

/** For a refusal that was already counted. `headers` are added to the usual ones. */
export function answerTooBusy(exchange: Exchange, limit: LimitName, headers: { Connection?: "close" } = {}): void {
  exchange.problem("TOO_BUSY", DETAILS[limit], { headers: { "Retry-After": RETRY_AFTER_SECONDS, ...headers } });
}

const DETAILS: { readonly [limit in LimitName]: string } = {
  connections: "Too many connections (`limits.connections`)",
  connections_per_address: "Too many connections from this address (`limits.connectionsPerAddress`)",
  held_polls: "Too many calls are held open (`limits.heldPolls`)",
  hosts: "Too many hosts are in use (`limits.hosts`)",
};
