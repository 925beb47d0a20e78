import { hostname } from "node:os";
import { type QueueDump, resolveOptions } from "@slotkeeper/queue";
import { sentenceOf } from "./config/advice.ts";
import { CONTROL_TIMES, ConfigSource, type ControlTimes } from "./config/config-source.ts";
import { ConfigError, ControllerError } from "./config/errors.ts";
import { type ConfigSources, type LoadedConfig, localSettings } from "./config/load-config.ts";
import { secretsOf } from "./config/print-config.ts";
import type { Settings, ShutdownTimes } from "./config/settings.ts";
import { startWarnings } from "./http/start-warnings.ts";
import { LineLogger, type LineLoggerInit } from "./log/logger.ts";
import { Scrubber } from "./log/scrubber.ts";
import { ServiceClock } from "./platform/clock.ts";
import { newSessionId } from "./platform/node-crypto.ts";
import { type ServiceBase, ServiceParts } from "./service-parts.ts";
import { openInTime } from "./store/open-in-time.ts";
import { type OpenStore, openStore } from "./store/open-store.ts";
import { exportMetrics } from "./telemetry/opentelemetry.ts";

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

/**
 * The service: it starts and stops configuration, store, queue and HTTP, which `ServiceParts` connects. A request goes from its HTTP
 * route over a validated message to `FairQueue`, the cycle of the host, and the store. This class is not part of that path.
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
  readonly #parts: ServiceParts;
  readonly #log: LineLogger;
  /** The settings at the start. The address and the store do not change after it. */
  readonly #atStart: Settings;
  #refreshing: Promise<void> = Promise.resolve();
  #stopping: Promise<void> | undefined;
  #address = "";
  #stopExport = () => {};

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
      const base = { clock, scrubber, log, opened, source, instance, reportedInstance, times, dashboard };
      const service = new Service(config, base);
      await service.#listen();
      return service;
    } catch (error) {
      await opened?.close();
      // There is no logger yet, so the message is printed as it is.
      if (error instanceof Error) error.message = scrubber.scrub(error.message);
      throw error;
    }
  }

  private constructor(config: LoadedConfig, base: ServiceBase) {
    this.#log = base.log;
    this.#atStart = config.settings;
    this.#parts = new ServiceParts(config, base, () => this.refresh());
    this.#parts.sweeper.every(config.settings.cleanupEveryMs);
  }

  /** The URL of the service, as seen from this machine. */
  get url(): string {
    return this.#parts.url;
  }

  /** The address on which it listens: `::` and `0.0.0.0` mean all addresses of this machine. */
  get address(): string {
    return this.#address;
  }

  /** The number of open connections. */
  get connections(): number {
    return this.#parts.http.connections;
  }

  /** The configuration in force. */
  get config(): LoadedConfig {
    return this.#parts.context.live.config;
  }

  /** Describes where the state is kept, for people; without secrets. */
  get storeDescription(): string {
    return this.#parts.base.opened.description;
  }

  /** The log of the service, for programs that embed it. */
  get log(): LineLogger {
    return this.#log;
  }

  /** The state of this instance's queue. */
  dump(): QueueDump {
    return this.#parts.queue.dump();
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
    const { base, telemetry, queue, sweeper } = this.#parts;
    let config: LoadedConfig;
    try {
      config = await base.source.next();
    } catch (error) {
      const message = "the new configuration was refused; the old one stays in force";
      if (error instanceof ConfigError) this.#log.error(message, { problems: error.problems });
      else this.#log.error(message, { error });
      if (error instanceof ControllerError) telemetry.instruments.count("pushFailures");
      throw error;
    }
    const { settings } = config;
    this.#parts.replace(config);
    queue.reconfigure(settings.fairQueue);
    sweeper.every(settings.cleanupEveryMs);
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
    const { base, held, telemetry, http, queue, sweeper, control } = this.#parts;
    const deadline = Date.now() + deadlineMs;
    this.#log.info("stopping", { held: held.size });
    held.drain();
    await pause(graceMs);
    telemetry.hub.close();
    const closed = http.close();
    // Cleared at the end, because a remaining timer would keep the process alive until the deadline.
    const cutOff = setTimeout(() => http.closeAllConnections(), Math.max(0, deadline - Date.now()));
    await closed;
    clearTimeout(cutOff);
    // Inputs that the store does not have yet, mostly releases, get the rest of the time.
    while (queue.overview().unsent > 0 && Date.now() < deadline) await pause(20);
    sweeper.every(undefined);
    await Promise.all([this.#leave(), control.stop(Math.max(0, deadline - Date.now()))]);
    queue.close();
    this.#stopExport();
    base.clock.stop();
    await base.opened.close();
    this.#log.info("stopped", { unsent: queue.overview().unsent });
  }

  /** A store that does not answer does not delay the stop: the last beat expires by itself. */
  async #leave(): Promise<void> {
    try {
      await this.#parts.queue.leave();
    } catch (error) {
      this.#log.warn("could not report to the store that this instance is stopping", { error });
    }
  }

  async #listen(): Promise<void> {
    const { http, telemetry, queue, control } = this.#parts;
    const { port, address } = await http.listen(this.config.settings.listen);
    const isAny = address === "::" || address === "0.0.0.0";
    const host = isAny ? "127.0.0.1" : address.includes(":") ? `[${address}]` : address;
    const url = `http://${host}:${port}`;
    this.#parts.url = url;
    this.#address = address;
    this.#log.info("listening", { url, address, store: this.storeDescription, config: this.config.version });
    for (const warning of startWarnings(this.config, address)) this.#log.warn(sentenceOf(warning));
    telemetry.start(queue);
    this.#stopExport = await exportMetrics(this.#parts.context);
    // After the address is known, because the beat contains it.
    await queue.start();
    control.start();
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
