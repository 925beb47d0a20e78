import { FairQueue, type InstanceAbout } from "@slotkeeper/queue";
import type { LoadedConfig } from "./config/load-config.ts";
import type { ConfigSource, ControlTimes } from "./control-plane/config-source.ts";
import { ControlPlane } from "./control-plane/control-plane.ts";
import { pushContextOf } from "./control-plane/push-context.ts";
import { endOfTurn } from "./end-of-turn.ts";
import { DashboardFiles } from "./http/dashboard/dashboard-files.ts";
import { HeldCalls } from "./http/held-calls.ts";
import { HttpServer } from "./http/http-server.ts";
import { Refusals } from "./http/refusals.ts";
import { RequestLog } from "./http/request-log.ts";
import type { ServiceContext } from "./http/service-context.ts";
import { aboutOf } from "./live/about.ts";
import { flush } from "./live/flush.ts";
import { LiveConfig } from "./live/live-config.ts";
import { Presence } from "./live/presence.ts";
import { Telemetry } from "./live/telemetry.ts";
import { EventLog } from "./log/log-events.ts";
import type { LineLogger } from "./log/logger.ts";
import type { Scrubber } from "./log/scrubber.ts";
import { logTurn } from "./readiness/log-turn.ts";
import { ReadinessCheck } from "./readiness/readiness.ts";
import type { ServiceClock } from "./service-clock.ts";
import type { OpenStore } from "./store/open-store.ts";
import { Sweeper } from "./store/sweeper.ts";
import { newSecret, newSessionId, newTokenKey } from "./tokens/random-names.ts";
import { VERSION } from "./version.ts";

/** What a service has before its parts are made: the configuration is read, and the store is open. */
export interface ServiceBase {
  readonly clock: ServiceClock;
  readonly scrubber: Scrubber;
  readonly log: LineLogger;
  readonly opened: OpenStore;
  readonly source: ConfigSource;
  /** The name of the instance in the fleet; new with every start. */
  readonly instance: string;
  readonly reportedInstance: string;
  readonly times: ControlTimes;
  /** A folder with another build of the dashboard. */
  readonly dashboard: string | undefined;
}

/** The parts of a service, connected with each other. `Service` starts them and stops them. */
export class ServiceParts {
  readonly base: ServiceBase;
  readonly live: LiveConfig;
  readonly held: HeldCalls;
  readonly telemetry: Telemetry;
  readonly queue: FairQueue;
  readonly control: ControlPlane;
  readonly http: HttpServer;
  readonly sweeper: Sweeper;
  /** Of the service, as seen from this machine. Known once it listens. */
  url = "";
  readonly #refusals: Refusals;
  readonly #refresh: () => Promise<void>;

  constructor(config: LoadedConfig, base: ServiceBase, refresh: () => Promise<void>) {
    const { log, opened } = base;
    this.base = base;
    this.#refresh = refresh;
    const tokenKeys = opened.tokenKeys ?? [newTokenKey()];
    this.live = new LiveConfig(config, { scrubber: base.scrubber, log, tokenKeys });
    this.#refusals = new Refusals(log);
    this.held = new HeldCalls(
      () => this.live.config.settings.limits.heldPolls,
      (exchange, limit) => this.#refusals.refuse(exchange, "held_polls", limit),
    );
    this.telemetry = new Telemetry({ ...this.#shared, live: () => this.live.current });
    this.queue = this.#newQueue();
    this.control = this.#newControl();
    this.http = new HttpServer(this.#newContext());
    this.sweeper = new Sweeper(this.queue, log);
  }

  get #shared() {
    const { opened, clock, log, instance } = this.base;
    return { store: opened.store, clock: opened.clock ?? clock, log, instance };
  }

  #newQueue(): FairQueue {
    const { clock, log, instance } = this.base;
    const nameOf = (host: string) => this.queue.glance(host)?.hostname;
    const eventLog = new EventLog({ log, nameOf, now: () => clock.now() });
    return new FairQueue({
      store: this.telemetry.store,
      clock,
      newSessionId,
      newSecret,
      instance,
      about: () => this.#about(),
      config: this.live.config.settings.fairQueue,
      observe: (event) => {
        this.telemetry.observe(event);
        eventLog.add(event);
      },
      soon: endOfTurn(),
    });
  }

  #newControl(): ControlPlane {
    const { source, times, reportedInstance } = this.base;
    return new ControlPlane({
      ...this.#shared,
      source,
      times,
      context: () => pushContextOf(this.live.config, reportedInstance, this.queue, this.telemetry.reader),
      refresh: this.#refresh,
      onFailure: () => this.telemetry.instruments.controllerFailures++,
    });
  }

  #newContext(): ServiceContext {
    const { live } = this;
    const { log, opened, instance, reportedInstance, source, dashboard } = this.base;
    const { clock } = this.#shared;
    return {
      queue: this.queue,
      opened,
      readiness: this.#newReadiness(),
      held: this.held,
      refusals: this.#refusals,
      requestLog: new RequestLog(log),
      connections: () => this.http.connections,
      isBoundToLoopback: () => this.http.isBoundToLoopback,
      log,
      instance,
      reportedInstance,
      version: VERSION,
      telemetry: this.telemetry,
      presence: new Presence({ reader: this.telemetry.reader, instance, about: () => this.#about() }),
      dashboard: new DashboardFiles(dashboard),
      get live() {
        return live.current;
      },
      now: () => clock.now(),
      isOnFallback: () => source.isOnFallback,
      refresh: this.#refresh,
      flush: () => flush(this.queue, this.control),
    };
  }

  #newReadiness(): ReadinessCheck {
    const { opened, log } = this.base;
    return new ReadinessCheck({
      health: () => opened.health(),
      isListenerUp: () => opened.gauges?.().listener.isUp,
      isStopping: () => this.held.isDraining,
      onTurn: (outcome, error) => logTurn(log, outcome, error),
    });
  }

  /** What beats and the list of instances report about this one. */
  #about(): InstanceAbout {
    return aboutOf(this.live.config, this.url, this.held.size, this.queue);
  }
}
