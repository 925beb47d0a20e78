import { FairQueue, type InstanceAbout } from "@slotkeeper/queue";
import type { ConfigSource, ControlTimes } from "./config/config-source.ts";
import type { LoadedConfig } from "./config/load-config.ts";
import type { ServiceContext } from "./http/context.ts";
import { DashboardFiles } from "./http/dashboard/dashboard-files.ts";
import { HeldCalls } from "./http/held-calls.ts";
import { HolderTraces } from "./http/holder-traces.ts";
import { HttpServer } from "./http/http-server.ts";
import { LiveConfig } from "./http/live-config.ts";
import { Refusals } from "./http/refusals.ts";
import { RequestLog } from "./http/request-log.ts";
import type { LineLogger } from "./log/logger.ts";
import type { Scrubber } from "./log/scrubber.ts";
import type { ServiceClock } from "./platform/clock.ts";
import { newSecret, newSessionId, newTokenKey } from "./platform/node-crypto.ts";
import { endOfTurn } from "./platform/turns.ts";
import { Sweeper } from "./queue/sweeper.ts";
import type { OpenStore } from "./store/open-store.ts";
import { aboutOf } from "./telemetry/about.ts";
import { ControlPlane, pushContextOf } from "./telemetry/control-plane.ts";
import { EventLog } from "./telemetry/event-log.ts";
import { Presence } from "./telemetry/presence.ts";
import { logTurn, ReadinessCheck } from "./telemetry/readiness.ts";
import { Telemetry } from "./telemetry/telemetry.ts";
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
  /** The queue of a keeper that shows it by these parts. Default: a new one. */
  readonly queue?: FairQueue;
}

/** The parts of a service, connected with each other. `Service` starts them and stops them. */
export class ServiceParts {
  readonly base: ServiceBase;
  readonly live: LiveConfig;
  readonly held: HeldCalls;
  readonly telemetry: Telemetry;
  readonly queue: FairQueue;
  readonly control: ControlPlane;
  readonly context: ServiceContext;
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
      () => this.live.current.limits.heldPolls,
      (exchange, limit) => this.#refusals.refuse(exchange, "held_polls", limit),
    );
    this.telemetry = new Telemetry({ ...this.#shared, live: () => this.live.current });
    this.queue = base.queue ?? this.#newQueue();
    this.control = this.#newControl();
    this.context = this.#newContext();
    this.http = new HttpServer(this.context);
    this.sweeper = new Sweeper(this.queue, log);
  }

  get #shared() {
    const { opened, clock, log, instance } = this.base;
    return { store: opened.store, clock: opened.clock ?? clock, log, instance };
  }

  #newQueue(): FairQueue {
    const { clock, log, instance } = this.#shared;
    const nameOf = (host: string) => this.queue.glance(host)?.hostname;
    const eventLog = new EventLog({ log, nameOf, now: () => clock.now() });
    return new FairQueue({
      store: this.telemetry.store,
      clock,
      newSessionId,
      newSecret,
      instance,
      about: () => this.#about(),
      config: this.live.current.config.settings.fairQueue,
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
      context: () => pushContextOf(this.live.current.config, reportedInstance, this.queue, this.telemetry.reader),
      refresh: this.#refresh,
      onFailure: () => this.telemetry.instruments.count("pushFailures"),
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
      traces: new HolderTraces(),
      newSessionId,
      now: () => clock.now(),
      isOnFallback: () => source.isOnFallback,
      refresh: this.#refresh,
      flush: () => this.sweeper.flush(() => this.control.push()),
    };
  }

  #newReadiness(): ReadinessCheck {
    const { opened, log } = this.base;
    return new ReadinessCheck({
      health: () => opened.health(),
      isListenerUp: () => opened.gauges?.().listener?.isUp,
      isStopping: () => this.held.isDraining,
      onTurn: (outcome, error) => logTurn(log, outcome, error),
    });
  }

  /** What beats and the list of instances report about this one. */
  #about(): InstanceAbout {
    return aboutOf(this.live.current.config, this.url, this.held.size, this.queue);
  }
}
