import type { LiveState } from "@slotkeeper/protocol";
import type { FairQueue, HostStore, QueueEvent } from "@slotkeeper/queue";
import type { Clock } from "slotkeeper";
import type { Live } from "../http/service-context.ts";
import type { Logger } from "../log/logger.ts";
import { Instruments } from "../metrics/instruments.ts";
import { MeteredStore } from "../metrics/metered-store.ts";
import { Activity } from "./activity.ts";
import { SkewWatch } from "./clock-skew.ts";
import { hostRow } from "./host-row.ts";
import { LiveHub } from "./live-hub.ts";
import { StoreReader } from "./store-reader.ts";

export interface TelemetryInit {
  readonly store: HostStore;
  readonly clock: Clock;
  readonly log: Logger;
  readonly instance: string;
  readonly live: () => Pick<Live, "hosts"> & { readonly config: { readonly version: string } };
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
  readonly #skew: SkewWatch;
  #queue: FairQueue | undefined;
  #isStoreSilent = false;

  constructor(init: TelemetryInit) {
    this.#init = init;
    const { store, clock, log } = init;
    this.store = new MeteredStore(store, this.instruments);
    this.reader = new StoreReader(this.store, () => this.#queue?.now() ?? clock.now());
    this.#skew = new SkewWatch(log);
    this.activity = new Activity(() => clock.now());
    this.hub = new LiveHub({
      clock,
      frame: (hosts, more) => this.#frame(hosts, more),
      onDropped: () => {
        this.instruments.listenersDropped++;
        log.info("disconnected a client of /events that did not read");
      },
      onError: (error) => log.warn("events could not be sent", { error }),
    });
  }

  observe(event: QueueEvent): void {
    this.instruments.observe(event);
    this.activity.observe(event);
    if (event.type !== "cycle" && "host" in event && event.host !== undefined) this.hub.stir(event.host);
  }

  /** Starts to take samples. */
  start(queue: FairQueue): void {
    this.#queue = queue;
    const { clock } = this.#init;
    clock.setTimer(() => {
      void this.#sample();
      if (this.reader.isShared) this.#skew.look(queue);
      this.start(queue);
    }, this.activity.stepMs);
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

  async #frame(keys: readonly string[], more: number): Promise<LiveState> {
    const { instance, live } = this.#init;
    const queue = this.#queue as FairQueue;
    const [totals, stored] = await Promise.all([this.reader.totals(), this.reader.hosts(keys)]);
    const { at, counts } = queue.overview();
    const { config, hosts: settings } = live();
    return {
      at,
      instance,
      configVersion: config.version,
      sessions: { ...queue.sessions() },
      counts: { ...counts },
      slots: { inFlight: totals.inFlight, limit: totals.slots, waiting: totals.waiting },
      hosts: keys.map((key) => {
        const [here, there] = [queue.glance(key), stored.get(key)];
        const { openMs } = settings.policyOf(here?.hostname ?? there?.hostname).breaker;
        return hostRow(key, here, there, { now: at, openMs });
      }),
      more,
    };
  }
}
