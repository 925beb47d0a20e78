import { FairQueue, type InstanceAbout } from "@slotkeeper/queue";
import type { ConfigSource, ControlTimes } from "./config/config-source.ts";
import type { LoadedConfig } from "./config/load-config.ts";
import { secretsOf } from "./config/print-config.ts";
import { Access } from "./http/access.ts";
import type { Live, ServiceContext } from "./http/context.ts";
import { DashboardFiles } from "./http/dashboard.ts";
import { RequestLog } from "./http/dispatch.ts";
import { HeldCalls, Refusals } from "./http/held-calls.ts";
import { HolderTraces } from "./http/holder-traces.ts";
import { HttpServer } from "./http/http-server.ts";
import type { LineLogger } from "./log/logger.ts";
import type { Scrubber } from "./log/scrubber.ts";
import { endOfTurn, type ServiceClock } from "./platform/clock.ts";
import { NODE_DIGESTS, newSecret, newSessionId, newTokenKey } from "./platform/node-crypto.ts";
import { HostSettings } from "./queue/host-settings.ts";
import { hostKeys, QueryTokens } from "./queue/names.ts";
import { Sweeper } from "./queue/sweeper.ts";
import type { OpenStore } from "./store/open-store.ts";
import { aboutOf } from "./telemetry/about.ts";
import { ControlPlane } from "./telemetry/control-plane.ts";
import { Presence } from "./telemetry/presence.ts";
import { logTurn, ReadinessCheck } from "./telemetry/readiness.ts";
import { EventLog, Telemetry } from "./telemetry/telemetry.ts";
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
  readonly held: HeldCalls;
  readonly telemetry: Telemetry;
  readonly queue: FairQueue;
  readonly control: ControlPlane;
  readonly context: ServiceContext & { live: Live };
  readonly http: HttpServer;
  readonly sweeper: Sweeper;
  /** Of the service, as seen from this machine. Known once it listens. */
  url = "";
  readonly #refusals: Refusals;
  readonly #keyOf = hostKeys(NODE_DIGESTS);
  /** The keys that sign tokens if the configuration has none. */
  readonly #tokenKeys: readonly string[];
  readonly #refresh: () => Promise<void>;

  constructor(config: LoadedConfig, base: ServiceBase, refresh: () => Promise<void>) {
    const { log, opened } = base;
    this.base = base;
    this.#refresh = refresh;
    this.#tokenKeys = opened.tokenKeys ?? [newTokenKey()];
    const live = this.#apply(config);
    this.#refusals = new Refusals(log);
    this.held = new HeldCalls(
      () => this.context.live.limits.heldPolls,
      (exchange, limit) => this.#refusals.refuse(exchange, "held_polls", limit),
    );
    this.telemetry = this.#newTelemetry();
    this.queue = base.queue ?? this.#newQueue(config);
    this.control = this.#newControl();
    this.context = this.#newContext(live);
    this.http = new HttpServer(this.context);
    this.sweeper = new Sweeper(this.queue, log);
  }

  get #shared() {
    const { opened, clock, log, instance } = this.base;
    return { store: opened.store, clock: opened.clock ?? clock, log, instance };
  }

  /** Applies a new configuration to all later requests. */
  replace(config: LoadedConfig): void {
    this.context.live = this.#apply(config);
  }

  /** Makes what a configuration is used with. Its level and its secrets apply to the log from now on. */
  #apply(config: LoadedConfig): Live {
    const { settings } = config;
    const keys = settings.tokenKeys ?? this.#tokenKeys;
    this.base.scrubber.learn([...secretsOf(config), ...keys]);
    this.base.log.level = settings.logLevel;
    return {
      config,
      limits: settings.limits,
      access: new Access(settings, NODE_DIGESTS),
      tokens: new QueryTokens(keys, NODE_DIGESTS, this.#keyOf),
      hosts: new HostSettings(config, this.#keyOf),
    };
  }

  #newTelemetry(): Telemetry {
    const { clock, log } = this.#shared;
    const nameOf = (host: string) => this.queue.glance(host)?.hostname;
    const live = () => this.context.live;
    // Only counts and histories are kept of the queue of a keeper.
    const isLogged = this.base.queue === undefined;
    const eventLog = new EventLog({ log, nameOf, now: () => clock.now() });
    return new Telemetry({ ...this.#shared, live, ...(isLogged ? { eventLog } : {}) });
  }

  #newQueue({ settings }: LoadedConfig): FairQueue {
    const { clock, instance } = this.#shared;
    return new FairQueue({
      store: this.telemetry.store,
      clock,
      newSessionId,
      newSecret,
      instance,
      about: () => this.#about(),
      config: settings.fairQueue,
      observe: this.telemetry.observe,
      soon: endOfTurn(),
    });
  }

  #newControl(): ControlPlane {
    const { source, times, reportedInstance } = this.base;
    return new ControlPlane({
      ...this.#shared,
      source,
      times,
      reportedInstance,
      queue: this.queue,
      reader: this.telemetry.reader,
      config: () => this.context.live.config,
      refresh: this.#refresh,
      onFailure: () => this.telemetry.instruments.count("pushFailures"),
    });
  }

  #newContext(live: Live): ServiceContext {
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
      live,
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
    return aboutOf(this.context.live.config, this.url, this.held.size, this.queue);
  }
}
