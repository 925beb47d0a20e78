import { hostname } from "node:os";
import { FairQueue, type QueueDump, resolveOptions } from "@slotkeeper/queue";
import { sentenceOf } from "./config/advice.ts";
import { ConfigError } from "./config/config-error.ts";
import { type ConfigSources, type LoadedConfig, localSettings } from "./config/load-config.ts";
import { secretsOf } from "./config/print-config.ts";
import type { Settings, ShutdownTimes } from "./config/settings.ts";
import { CONTROL_TIMES, ConfigSource, type ControlTimes } from "./control-plane/config-source.ts";
import { ControlPlane } from "./control-plane/control-plane.ts";
import { ControllerError } from "./control-plane/controller-error.ts";
import { pushContextOf } from "./control-plane/push-context.ts";
import { endOfTurn } from "./end-of-turn.ts";
import { DashboardFiles } from "./http/dashboard/dashboard-files.ts";
import { Guards } from "./http/guards.ts";
import { HeldCalls } from "./http/held-calls.ts";
import { HttpServer } from "./http/http-server.ts";
import { Refusals } from "./http/refusals.ts";
import { RequestLog } from "./http/request-log.ts";
import type { Flushed, Live, ServiceContext } from "./http/service-context.ts";
import { aboutOf } from "./live/about.ts";
import { flush } from "./live/flush.ts";
import { HostSettings } from "./live/host-settings.ts";
import { Presence } from "./live/presence.ts";
import { Telemetry } from "./live/telemetry.ts";
import { logEvent } from "./log/log-events.ts";
import { LineLogger, type LineLoggerInit } from "./log/logger.ts";
import { Scrubber } from "./log/scrubber.ts";
import { logTurn } from "./readiness/log-turn.ts";
import { ReadinessCheck } from "./readiness/readiness.ts";
import { ServiceClock } from "./service-clock.ts";
import { startWarnings } from "./start-warnings.ts";
import { openInTime } from "./store/open-in-time.ts";
import { type OpenStore, openStore } from "./store/open-store.ts";
import { Sweeper } from "./store/sweeper.ts";
import { QueryTokens } from "./tokens/query-tokens.ts";
import { newSecret, newSessionId, newTokenKey } from "./tokens/random-names.ts";
import { VERSION } from "./version.ts";

/** What `Service.start` needs: the sources of the configuration, and where log lines go. */
export interface ServiceInit extends ConfigSources {
  /** Where log lines go, and how they look. */
  readonly log: Pick<LineLoggerInit, "write" | "lost" | "isJson" | "hasColours">;
  /** The times of calls to a control plane. Default: those for production. */
  readonly controlTimes?: Partial<ControlTimes>;
  /** Opens another store than the configured one, for programs that embed the service and for tests. */
  readonly open?: typeof openStore;
  /** A folder with another build of the dashboard. Default: the packaged one. */
  readonly dashboard?: string;
}

interface ServiceParts {
  readonly clock: ServiceClock;
  readonly scrubber: Scrubber;
  readonly log: LineLogger;
  readonly opened: OpenStore;
  readonly source: ConfigSource;
  readonly instance: string;
  readonly reportedInstance: string;
  readonly times: ControlTimes;
  readonly dashboard: string | undefined;
}

/**
 * The service: it connects configuration, store, queue and HTTP. A request goes from its HTTP route over a validated
 * message to `FairQueue`, the cycle of the host, and the store. This class is not part of that path.
 *
 * @example
 * ```ts
 * import { Service } from "@slotkeeper/server";
 *
 * const service = await Service.start({
 *   flags: { listen: "127.0.0.1:0" },
 *   log: { write: (line) => process.stderr.write(line), isJson: true, hasColours: false },
 * });
 * console.log(service.url);
 * await service.stop();
 * ```
 */
export class Service {
  readonly #scrubber: Scrubber;
  readonly #clock: ServiceClock;
  readonly #held: HeldCalls;
  readonly #refusals: Refusals;
  readonly #log: LineLogger;
  readonly #opened: OpenStore;
  readonly #source: ConfigSource;
  readonly #instance: string;
  readonly #reportedInstance: string;
  readonly #telemetry: Telemetry;
  readonly #readiness: ReadinessCheck;
  readonly #presence: Presence;
  readonly #control: ControlPlane;
  readonly #queue: FairQueue;
  readonly #http: HttpServer;
  readonly #sweeper: Sweeper;
  readonly #tokenKeys: readonly string[];
  /** The settings at the start. The address and the store do not change after it. */
  readonly #atStart: Settings;
  #live: Live;
  #refreshing: Promise<void> = Promise.resolve();
  #stopping: Promise<void> | undefined;
  #url = "";
  #address = "";

  /**
   * Reads the configuration, opens the store and listens. Throws a `ConfigError` if the configuration has problems, a
   * `SchemaError` if the database is not migrated, and the errors of the journal if it cannot be used.
   */
  static async start({
    log: lines,
    controlTimes,
    open = openStore,
    dashboard,
    ...sources
  }: ServiceInit): Promise<Service> {
    const scrubber = new Scrubber();
    let opened: OpenStore | undefined;
    try {
      const { settings, tree } = localSettings(sources);
      scrubber.learn(secretsOf({ tree }));
      const clock = new ServiceClock();
      const log = new LineLogger({ ...lines, scrubber, now: Date.now });
      log.level = settings.logLevel;
      const { instanceId = `${hostname()}-${process.pid}` } = settings.identity;
      // New with every start: what an earlier process left in the store belongs to another instance.
      const instance = `${instanceId}-${newSessionId().slice(0, 8)}`;
      const reportedInstance = settings.identity.instanceId ?? instance;
      const times = { ...CONTROL_TIMES, ...controlTimes };
      const learnSecrets = (secrets: Iterable<string>) => scrubber.learn(secrets);
      const source = new ConfigSource({ sources, instance: reportedInstance, times, log, learnSecrets, pause });
      const config = await source.first();
      const { backend, fairQueue } = config.settings;
      const { collectMs } = resolveOptions(fairQueue);
      opened = await openInTime(() => open(backend, clock, log, collectMs), { backend, log, pause });
      const parts = { clock, scrubber, log, opened, source, instance, reportedInstance, times, dashboard };
      const service = new Service(config, parts);
      await service.#listen();
      return service;
    } catch (error) {
      await opened?.close();
      // There is no logger yet, so the message is printed as it is.
      if (error instanceof Error) error.message = scrubber.scrub(error.message);
      throw error;
    }
  }

  private constructor(config: LoadedConfig, parts: ServiceParts) {
    const { settings } = config;
    this.#clock = parts.clock;
    this.#scrubber = parts.scrubber;
    this.#log = parts.log;
    this.#opened = parts.opened;
    this.#source = parts.source;
    this.#instance = parts.instance;
    this.#reportedInstance = parts.reportedInstance;
    this.#refusals = new Refusals(this.#log);
    this.#held = new HeldCalls(
      () => this.#live.config.settings.limits.heldPolls,
      (exchange, limit) => this.#refusals.refuse(exchange, "held_polls", limit),
    );
    this.#tokenKeys = this.#opened.tokenKeys ?? [newTokenKey()];
    this.#atStart = config.settings;
    this.#live = this.#liveOf(config);
    const { store } = this.#opened;
    const shared = { store, clock: this.#clock, log: this.#log, instance: this.#instance };
    this.#telemetry = new Telemetry({ ...shared, live: () => this.#live });
    this.#queue = new FairQueue({
      store: this.#telemetry.store,
      clock: this.#clock,
      random: Math.random,
      newSessionId,
      newSecret,
      instance: this.#instance,
      about: () => aboutOf(this.#live.config, this.#url, this.#held.size, this.#queue),
      config: settings.fairQueue,
      observe: (event) => {
        this.#telemetry.observe(event);
        logEvent(this.#log, event, (host) => this.#queue.glance(host)?.hostname);
      },
      soon: endOfTurn(),
    });
    this.#readiness = new ReadinessCheck({
      health: () => this.#opened.health(),
      isListenerUp: () => this.#opened.gauges?.().listener.isUp,
      isStopping: () => this.#held.isDraining,
      onTurn: (outcome, error) => logTurn(this.#log, outcome, error),
    });
    this.#presence = new Presence({
      ...shared,
      reader: this.#telemetry.reader,
      about: () => aboutOf(this.#live.config, this.#url, this.#held.size, this.#queue),
    });
    this.#control = new ControlPlane({
      ...shared,
      source: parts.source,
      times: parts.times,
      context: () => pushContextOf(this.#live.config, this.#reportedInstance, this.#queue, this.#telemetry.reader),
      refresh: () => this.refresh(),
      onFailure: () => this.#telemetry.instruments.controllerFailures++,
    });
    this.#http = new HttpServer(this.#context(new DashboardFiles(parts.dashboard)));
    this.#sweeper = new Sweeper(this.#queue, this.#log);
    this.#sweeper.every(settings.cleanupEveryMs);
  }

  /** The URL of the service, as seen from this machine. */
  get url(): string {
    return this.#url;
  }

  /** The address on which it listens: `::` and `0.0.0.0` mean all addresses of this machine. */
  get address(): string {
    return this.#address;
  }

  /** The number of open connections. */
  get connections(): number {
    return this.#http.connections;
  }

  /** The configuration in force. */
  get config(): LoadedConfig {
    return this.#live.config;
  }

  /** Describes where the state is kept, for people; without secrets. */
  get storeDescription(): string {
    return this.#opened.description;
  }

  /** The log of the service, for programs that embed it. */
  get log(): LineLogger {
    return this.#log;
  }

  /** The state of this instance's queue. */
  dump(): QueueDump {
    return this.#queue.dump();
  }

  /**
   * Loads the configuration again. Sessions survive. Throws a `ConfigError` if it is invalid, or a `ControllerError` if
   * the controller does not answer; then nothing has changed. Refreshes run one after the other, so the last one wins.
   */
  refresh(): Promise<void> {
    const refreshed = this.#refreshing.then(() => this.#refresh());
    this.#refreshing = refreshed.catch(() => {});
    return refreshed;
  }

  async #refresh(): Promise<void> {
    let config: LoadedConfig;
    try {
      config = await this.#source.next();
    } catch (error) {
      const message = "the new configuration was refused; the old one stays in force";
      if (error instanceof ConfigError) this.#log.error(message, { problems: error.problems });
      else this.#log.error(message, { error });
      if (error instanceof ControllerError) this.#telemetry.instruments.controllerFailures++;
      throw error;
    }
    const { settings } = config;
    this.#live = this.#liveOf(config);
    this.#queue.reconfigure(settings.fairQueue);
    this.#sweeper.every(settings.cleanupEveryMs);
    for (const key of ["listen", "backend"] as const) {
      const isSame = JSON.stringify(this.#atStart[key]) === JSON.stringify(settings[key]);
      if (!isSame) this.#log.warn(`\`${key}\` changed: restart the service to apply it`);
    }
    for (const warning of config.warnings) this.#log.warn(sentenceOf(warning));
    this.#log.info("configuration refreshed", { version: config.version });
  }

  /** Stops gracefully. A second call waits for the same stop. */
  stop(times: ShutdownTimes = { ...this.config.settings.shutdown, graceMs: 0 }): Promise<void> {
    this.#stopping ??= this.#stop(times);
    return this.#stopping;
  }

  async #stop({ graceMs, deadlineMs }: ShutdownTimes): Promise<void> {
    const deadline = Date.now() + deadlineMs;
    this.#log.info("stopping", { held: this.#held.size });
    this.#held.drain();
    await pause(graceMs);
    this.#telemetry.hub.close();
    const closed = this.#http.close();
    // Cleared at the end, because a remaining timer would keep the process alive until the deadline.
    const cutOff = setTimeout(() => this.#http.closeAllConnections(), Math.max(0, deadline - Date.now()));
    await closed;
    clearTimeout(cutOff);
    // Inputs that the store does not have yet, mostly releases, get the rest of the time.
    while (this.#queue.overview().unsent > 0 && Date.now() < deadline) await pause(20);
    this.#sweeper.every(undefined);
    await Promise.all([this.#leave(), this.#control.stop(Math.max(0, deadline - Date.now()))]);
    this.#queue.close();
    this.#clock.stop();
    await this.#opened.close();
    this.#log.info("stopped", { unsent: this.#queue.overview().unsent });
  }

  /** A store that does not answer does not delay the stop: the last beat expires by itself. */
  async #leave(): Promise<void> {
    try {
      await this.#queue.leave();
    } catch (error) {
      this.#log.warn("could not report to the store that this instance is stopping", { error });
    }
  }

  async #listen(): Promise<void> {
    const { listen } = this.#live.config.settings;
    const { port, address } = await this.#http.listen(listen);
    const isAny = address === "::" || address === "0.0.0.0";
    const host = isAny ? "127.0.0.1" : address.includes(":") ? `[${address}]` : address;
    this.#url = `http://${host}:${port}`;
    this.#address = address;
    this.#log.info("listening", { url: this.#url, address, store: this.storeDescription, config: this.config.version });
    for (const warning of startWarnings(this.#live.config, address)) this.#log.warn(sentenceOf(warning));
    this.#telemetry.start(this.#queue);
    // After the address is known, because the beat contains it.
    await this.#queue.start();
    this.#control.start();
  }

  #liveOf(config: LoadedConfig): Live {
    const { settings } = config;
    const keys = settings.tokenKeys ?? this.#tokenKeys;
    this.#scrubber.learn([...secretsOf(config), ...keys]);
    this.#log.level = settings.logLevel;
    return { config, guards: new Guards(settings), tokens: new QueryTokens(keys), hosts: new HostSettings(config) };
  }

  #context(dashboard: DashboardFiles): ServiceContext {
    const live = () => this.#live;
    return {
      queue: this.#queue,
      opened: this.#opened,
      readiness: this.#readiness,
      held: this.#held,
      refusals: this.#refusals,
      requestLog: new RequestLog(this.#log),
      connections: () => this.#http.connections,
      isBoundToLoopback: () => this.#http.isBoundToLoopback,
      log: this.#log,
      instance: this.#instance,
      reportedInstance: this.#reportedInstance,
      version: VERSION,
      telemetry: this.#telemetry,
      presence: this.#presence,
      dashboard,
      get live() {
        return live();
      },
      now: () => this.#clock.now(),
      isOnFallback: () => this.#source.isOnFallback,
      refresh: () => this.refresh(),
      flush: (): Promise<Flushed> => flush(this.#queue, this.#control),
    };
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
