import type { FairQueue, HostStore, QueueEvent } from "@slotkeeper/queue";
import type { Clock } from "slotkeeper";
import { LogThrottle } from "../log/log-throttle.ts";
import type { Logger } from "../log/logger.ts";
import type { HostSettings } from "../queue/host-settings.ts";
import { Activity } from "./activity.ts";
import type { EventLog } from "./event-log.ts";
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
