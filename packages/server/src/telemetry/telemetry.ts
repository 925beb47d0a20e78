import type { FairQueue, HostStore, QueueEvent } from "@slotkeeper/queue";
import type { Clock } from "slotkeeper";
import { LogThrottle } from "../log/log-throttle.ts";
import type { Logger } from "../log/logger.ts";
import type { HostSettings } from "../queue/host-settings.ts";
import { Activity } from "./activity.ts";
import { Instruments, MeteredStore } from "./instruments.ts";
import { liveFrame } from "./live-frame.ts";
import { LiveHub } from "./live-hub.ts";
import { StoreReader } from "./store-reader.ts";

export interface TelemetryInit {
  readonly store: HostStore;
  readonly clock: Clock;
  readonly log: Logger;
  readonly instance: string;
  readonly live: () => { readonly hosts: HostSettings; readonly config: { readonly version: string } };
  /** Default: events are not logged. */
  readonly eventLog?: EventLog;
}

/**
 * From this difference of clocks on, an operator should act: leases and deadlines stay correct, but logs of two machines
 * cannot be compared.
 */
export const SKEW_WARN_MS = 1_000;
const SKEW_WARN_EVERY_MS = 600_000;

/**
 * By how much the store's clock is ahead of this machine's, from the last answers. The error is at most one round trip.
 */
export function clockSkewMs(queue: Pick<FairQueue, "now">): number {
  return queue.now() - Date.now();
}

/** Everything that observes the service. It gets events and reads the store, and nothing waits for it. */
export class Telemetry {
  readonly instruments = new Instruments();
  readonly reader: StoreReader;
  readonly activity: Activity;
  readonly hub: LiveHub;
  /** The store for the engine, with timing. */
  readonly store: HostStore;
  readonly #init: TelemetryInit;
  readonly #skewThrottle = new LogThrottle({ burst: 1, everyMs: SKEW_WARN_EVERY_MS });
  #queue: FairQueue | undefined;
  #isStoreSilent = false;

  constructor(init: TelemetryInit) {
    this.#init = init;
    const { store, clock, log } = init;
    this.store = new MeteredStore(store, this.instruments);
    this.reader = new StoreReader(this.store, () => this.#queue?.now() ?? clock.now());
    this.activity = new Activity(() => clock.now());
    this.hub = new LiveHub({
      clock,
      frame: (hosts, more) => {
        const { instance, live } = this.#init;
        return liveFrame(hosts, more, { instance, live: live(), queue: this.#queue as FairQueue, reader: this.reader });
      },
      onDropped: () => {
        this.instruments.count("listenersDropped");
        log.info("disconnected a client of /events that did not read");
      },
      onError: (error) => log.warn("events could not be sent", { error }),
    });
  }

  readonly observe = (event: QueueEvent): void => {
    this.instruments.observe(event);
    this.activity.observe(event);
    if (event.type !== "cycle" && "host" in event && event.host !== undefined) this.hub.stir(event.host);
    this.#init.eventLog?.add(event);
  };

  /** Starts to take samples. */
  start(queue: FairQueue): void {
    this.#queue = queue;
    const { clock } = this.#init;
    clock.setTimer(() => {
      void this.#sample();
      if (this.reader.isShared) this.#warnOfSkew(queue);
      this.start(queue);
    }, this.activity.stepMs);
  }

  #warnOfSkew(queue: FairQueue): void {
    const skewMs = Math.round(clockSkewMs(queue));
    if (Math.abs(skewMs) <= SKEW_WARN_MS || this.#skewThrottle.take() === undefined) return;
    this.#init.log.warn(
      "the clock of this machine differs from the clock of the store: leases and waits use the store's, the times in this log do not",
      { skewMs },
    );
  }

  async #sample(): Promise<void> {
    try {
      await this.activity.sample(this.reader);
      this.#isStoreSilent = false;
    } catch (error) {
      // Logged once, not every five seconds: callers that need the store report its failure themselves.
      if (!this.#isStoreSilent) this.#init.log.warn("the history has a gap: the store could not be read", { error });
      this.#isStoreSilent = true;
    }
  }
}

/** What an `EventLog` needs. */
export interface EventLogInit {
  readonly log: Logger;
  /** The name of a host, if a caller sent it. */
  readonly nameOf: (host: string) => string | undefined;
  readonly now: () => number;
}

/** How often a host may report refused buckets. */
const WINDOWS_EVERY_MS = 60_000;
/** The hosts whose windows are counted. Of more hosts, the count of the one that was reported first is lost. */
const MOST_HOSTS = 10_000;

interface Windows {
  reportedAt: number;
  /** Since the last report. */
  count: number;
}

/** Events of single sessions are logged at debug level; events that an operator must notice are logged above it. */
export class EventLog {
  readonly #init: EventLogInit;
  readonly #windows = new Map<string, Windows>();

  constructor(init: EventLogInit) {
    this.#init = init;
  }

  add(event: QueueEvent): void {
    const { log } = this.#init;
    const { type } = event;
    if (type === "store-error") {
      log.warn("store call failed", { host: event.host, operation: event.operation, error: event.error });
    } else if (type === "probe-decision") {
      this.#addWindow(event);
    } else if (type === "reclaimed") {
      const { host, bucket, fence } = event;
      log.info("a lease expired without a release", { host: this.#shown(host), bucket, fence });
    } else if (type !== "cycle" && log.isOn("debug")) {
      const { type: _type, ...fields } = event;
      log.debug(type.replaceAll("-", " "), fields);
    }
  }

  /**
   * A busy host has many windows in a second. At info it reports one of them, with the number since the last report; at
   * debug all of them are logged.
   */
  #addWindow({ host, bucket, isAllowed, reason }: QueueEvent & { type: "probe-decision" }): void {
    const { log, now } = this.#init;
    const decision = { host: this.#shown(host), ip: bucket, allowed: isAllowed, reason };
    const windows = this.#windows.get(host);
    if (windows !== undefined && now() < windows.reportedAt + WINDOWS_EVERY_MS) {
      windows.count++;
      log.debug("probe decision", decision);
      return;
    }
    log.info("probe decision", { ...decision, windows: (windows?.count ?? 0) + 1 });
    // Moved to the end: the first entry is the one that was reported first.
    this.#windows.delete(host);
    this.#windows.set(host, { reportedAt: now(), count: 0 });
    const [oldest] = this.#windows.keys();
    if (this.#windows.size > MOST_HOSTS && oldest !== undefined) this.#windows.delete(oldest);
  }

  #shown(host: string): string {
    return this.#init.nameOf(host) ?? host;
  }
}
