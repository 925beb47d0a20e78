import type { FairQueue } from "@slotkeeper/queue";
import type { Clock } from "slotkeeper";
import type { ConfigSource, ControlTimes } from "../config/config-source.ts";
import { ControllerError } from "../config/errors.ts";
import type { LoadedConfig } from "../config/load-config.ts";
import type { Logger } from "../log/logger.ts";
import { VERSION } from "../version.ts";
import { MetricsPush, type PushContext } from "./metrics-push.ts";
import type { StoreReader } from "./store-reader.ts";

export interface ControlPlaneInit {
  readonly source: ConfigSource;
  readonly times: ControlTimes;
  readonly clock: Clock;
  readonly log: Logger;
  /** `undefined` if there is no control plane now. */
  readonly context: () => Promise<PushContext | undefined>;
  /** Applies the configuration of the controller. */
  readonly refresh: () => Promise<void>;
  readonly onFailure: () => void;
}

/**
 * The regular calls to the control plane: the metrics every minute, and the configuration while the service runs with
 * the local one because the controller did not answer. If the controller fails, the service only logs it.
 */
export class ControlPlane {
  readonly #init: ControlPlaneInit;
  readonly #metrics: MetricsPush;
  #timer: unknown;

  constructor(init: ControlPlaneInit) {
    this.#init = init;
    this.#metrics = new MetricsPush(init.times.timeoutMs);
  }

  start(): void {
    const { clock, times } = this.#init;
    this.#timer = clock.setTimer(() => {
      void this.#turn().finally(() => this.start());
    }, times.pushEveryMs);
  }

  /** Resolves if there is no controller. Rejects with a `ControllerError`; then no count is lost. */
  async push(): Promise<void> {
    if ((await this.#init.context()) === undefined) return;
    try {
      await this.#metrics.push(async () => {
        const context = await this.#init.context();
        if (context === undefined) throw new ControllerError("refused", "no controller is configured any more");
        return context;
      });
    } catch (error) {
      this.#init.onFailure();
      throw error;
    }
  }

  /**
   * Pushes the last counts. It retries as at a start, for at most `patienceMs`. Counts that the controller did not
   * accept by then are written to the log.
   */
  async stop(patienceMs: number): Promise<void> {
    const { clock, log, times } = this.#init;
    clock.clearTimer(this.#timer);
    const endAt = clock.now() + patienceMs;
    for (let attempt = 1, pauseMs = times.retryMs; ; attempt++, pauseMs *= 2) {
      try {
        await this.push();
        return;
      } catch (error) {
        if (attempt < times.attempts && clock.now() + pauseMs < endAt) {
          await new Promise<void>((resolve) => void clock.setTimer(resolve, pauseMs));
          continue;
        }
        const overview = (await this.#init.context())?.overview;
        const counts = overview === undefined ? {} : this.#metrics.untaken(overview.counts);
        log.error("the controller did not accept the last metrics: these counts are only in this log line", {
          counts,
          error,
        });
        return;
      }
    }
  }

  async #turn(): Promise<void> {
    // `refresh` logs its own failures.
    if (this.#init.source.isOnFallback) await this.#init.refresh().catch(() => {});
    await this.#pushQuietly();
  }

  async #pushQuietly(): Promise<void> {
    try {
      await this.push();
    } catch (error) {
      this.#init.log.warn("the controller did not accept the metrics: the next push sends them again", { error });
    }
  }
}

/** What a push reports about this instance; `undefined` if no controller is configured. */
export async function pushContextOf(
  { settings, version: configVersion }: LoadedConfig,
  instance: string,
  queue: FairQueue,
  reader: StoreReader,
): Promise<PushContext | undefined> {
  const { controller: address, identity } = settings;
  if (address === undefined) return undefined;
  // If the store does not answer, the counts are sent anyway.
  const smoothHosts = await reader.totals().then(
    ({ spaced }) => spaced,
    () => 0,
  );
  const [overview, sessions] = [queue.overview(), queue.sessions()];
  return { address, identity, instance, version: VERSION, configVersion, overview, sessions, smoothHosts };
}
