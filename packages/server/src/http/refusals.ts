import type { FairQueue } from "@slotkeeper/queue";
import { LogThrottle } from "../log/log-throttle.ts";
import type { Logger } from "../log/logger.ts";
import type { Exchange } from "./exchange.ts";

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
