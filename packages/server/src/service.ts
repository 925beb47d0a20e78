import { hostname } from "node:os";
import { FairQueue, type QueueDump } from "@slotkeeper/queue";
import { ConfigError } from "./config/config-error.ts";
import { type ConfigSources, type LoadedConfig, loadConfig } from "./config/load-config.ts";
import { secretsOf } from "./config/print-config.ts";
import { Guards } from "./http/guards.ts";
import { HeldCalls } from "./http/held-calls.ts";
import { HttpServer } from "./http/http-server.ts";
import type { Live, ServiceContext } from "./http/service-context.ts";
import { logEvent } from "./log/log-events.ts";
import { LineLogger } from "./log/logger.ts";
import { Scrubber } from "./log/scrubber.ts";
import { ServiceClock } from "./service-clock.ts";
import { startWarnings } from "./start-warnings.ts";
import { type OpenStore, openStore } from "./store/open-store.ts";
import { QueryTokens } from "./tokens/query-tokens.ts";
import { newSessionId, newTokenKey } from "./tokens/random-names.ts";
import { VERSION } from "./version.ts";

export interface ServiceInit extends ConfigSources {
  readonly log: { readonly write: (line: string) => void; readonly isJson: boolean; readonly hasColours: boolean };
}

export interface StopTimes {
  /** How long new requests are still answered, so that a balancer sees `/readyz` turn. */
  readonly graceMs: number;
  /** When whatever is still open is cut off. */
  readonly deadlineMs: number;
}

interface ServiceParts {
  readonly clock: ServiceClock;
  readonly scrubber: Scrubber;
  readonly log: LineLogger;
  readonly opened: OpenStore;
}

/**
 * The service: configuration, store, queue and HTTP put together. The way of a request is HTTP route → validated message
 * → `FairQueue` → the host's cycle → the store; nothing here stands in it.
 */
export class Service {
  readonly #sources: ConfigSources;
  readonly #scrubber: Scrubber;
  readonly #clock: ServiceClock;
  readonly #held = new HeldCalls();
  readonly #log: LineLogger;
  readonly #opened: OpenStore;
  readonly #queue: FairQueue;
  readonly #http: HttpServer;
  readonly #tokenKeys: readonly string[];
  #live: Live;
  #sweeping: NodeJS.Timeout | undefined;
  #stopping: Promise<void> | undefined;
  #url = "";

  static async start({ log: lines, ...sources }: ServiceInit): Promise<Service> {
    const config = loadConfig(sources);
    const scrubber = new Scrubber();
    scrubber.learn(secretsOf(config));
    const clock = new ServiceClock();
    const log = new LineLogger({ ...lines, scrubber, now: Date.now });
    log.level = config.settings.logLevel;
    let opened: OpenStore | undefined;
    try {
      opened = await openStore(config.settings.backend, clock, log);
      const service = new Service(sources, config, { clock, scrubber, log, opened });
      await service.#listen();
      return service;
    } catch (error) {
      await opened?.close();
      // Nobody logs this one: it is printed as it is.
      if (error instanceof Error) error.message = scrubber.scrub(error.message);
      throw error;
    }
  }

  private constructor(sources: ConfigSources, config: LoadedConfig, parts: ServiceParts) {
    const { settings } = config;
    this.#sources = sources;
    this.#clock = parts.clock;
    this.#scrubber = parts.scrubber;
    this.#log = parts.log;
    this.#opened = parts.opened;
    this.#tokenKeys = this.#opened.tokenKeys ?? [newTokenKey()];
    this.#live = this.#liveOf(config);
    const instance = settings.identity.instanceId ?? `${hostname()}-${process.pid}-${newSessionId().slice(0, 6)}`;
    this.#queue = new FairQueue({
      store: this.#opened.store,
      clock: this.#clock,
      random: Math.random,
      newSessionId,
      instance,
      config: settings.fairQueue,
      observe: (event) => logEvent(this.#log, event),
      // What the sockets brought in one turn of the event loop is decided together, in one call to the store.
      soon: setImmediate,
    });
    this.#http = new HttpServer(this.#context(instance));
    this.#sweepEvery(settings.cleanupEveryMs);
  }

  /** Where it answers, as seen from this machine. */
  get url(): string {
    return this.#url;
  }

  get config(): LoadedConfig {
    return this.#live.config;
  }

  get storeDescription(): string {
    return this.#opened.description;
  }

  get log(): LineLogger {
    return this.#log;
  }

  dump(): QueueDump {
    return this.#queue.dump();
  }

  /** Reads the configuration again. Sessions survive; a bad configuration throws a `ConfigError` and changes nothing. */
  async refresh(): Promise<void> {
    const before = this.#live.config.settings;
    let config: LoadedConfig;
    try {
      config = loadConfig(this.#sources);
    } catch (error) {
      if (error instanceof ConfigError)
        this.#log.error("refresh refused, the old configuration stays", { problems: error.problems });
      throw error;
    }
    const { settings } = config;
    this.#live = this.#liveOf(config);
    await this.#queue.reconfigure(settings.fairQueue);
    this.#sweepEvery(settings.cleanupEveryMs);
    for (const key of ["listen", "backend"] as const) {
      const isSame = JSON.stringify(before[key]) === JSON.stringify(settings[key]);
      if (!isSame) this.#log.warn(`\`${key}\` changed: that takes a restart`);
    }
    this.#log.info("configuration refreshed", { version: config.version });
  }

  /** Gracefully; calling again waits for the same stop. */
  stop(times: StopTimes = { graceMs: 0, deadlineMs: 10_000 }): Promise<void> {
    this.#stopping ??= this.#stop(times);
    return this.#stopping;
  }

  async #stop({ graceMs, deadlineMs }: StopTimes): Promise<void> {
    const deadline = Date.now() + deadlineMs;
    this.#log.info("stopping", { held: this.#held.size });
    this.#held.drain();
    await pause(graceMs);
    const closed = this.#http.close();
    // Cleared, not forgotten: a timer that is left would keep the process for the whole of the deadline.
    const cutOff = setTimeout(() => this.#http.closeAllConnections(), Math.max(0, deadline - Date.now()));
    await closed;
    clearTimeout(cutOff);
    // What the store has not heard yet, releases above all, gets the rest of the time.
    while (this.#queue.dump().unsent > 0 && Date.now() < deadline) await pause(20);
    clearInterval(this.#sweeping);
    this.#queue.close();
    this.#clock.stop();
    await this.#opened.close();
    this.#log.info("stopped", { unsent: this.#queue.dump().unsent });
  }

  async #listen(): Promise<void> {
    const { listen } = this.#live.config.settings;
    const { port, address } = await this.#http.listen(listen);
    const isAny = address === "::" || address === "0.0.0.0";
    const host = isAny ? "127.0.0.1" : address.includes(":") ? `[${address}]` : address;
    this.#url = `http://${host}:${port}`;
    this.#log.info("listening", { url: this.#url, store: this.storeDescription, config: this.config.version });
    for (const warning of startWarnings(this.#live.config, address)) this.#log.warn(warning);
  }

  #liveOf(config: LoadedConfig): Live {
    const { settings } = config;
    const keys = settings.tokenKeys ?? this.#tokenKeys;
    this.#scrubber.learn([...secretsOf(config), ...keys]);
    this.#log.level = settings.logLevel;
    return { config, guards: new Guards(settings), tokens: new QueryTokens(keys) };
  }

  #context(instance: string): ServiceContext {
    const live = () => this.#live;
    return {
      queue: this.#queue,
      opened: this.#opened,
      held: this.#held,
      log: this.#log,
      instance,
      version: VERSION,
      get live() {
        return live();
      },
      refresh: () => this.refresh(),
    };
  }

  #sweepEvery(intervalMs: number | undefined): void {
    clearInterval(this.#sweeping);
    if (intervalMs === undefined) return;
    const sweep = () => {
      this.#queue.sweep().then(
        ({ failures }) => failures.forEach((error) => this.#log.warn("cleanup step failed", { error })),
        (error: unknown) => this.#log.warn("cleanup failed", { error }),
      );
    };
    this.#sweeping = setInterval(sweep, Math.min(intervalMs, 2 ** 31 - 1)).unref();
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
