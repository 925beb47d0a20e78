import type { FairQueue, QueueCounts } from "@slotkeeper/queue";
import type { Clock } from "slotkeeper";
import type { ConfigSource, ControlTimes } from "../config/config-source.ts";
import { dismiss, postToController } from "../config/controller.ts";
import { ControllerError } from "../config/errors.ts";
import type { LoadedConfig } from "../config/load-config.ts";
import type { Logger } from "../log/logger.ts";
import { VERSION } from "../version.ts";
import type { StoreReader } from "./store-reader.ts";

export interface ControlPlaneInit {
  readonly source: ConfigSource;
  readonly times: ControlTimes;
  readonly clock: Clock;
  readonly log: Logger;
  readonly queue: FairQueue;
  readonly reader: StoreReader;
  /** The name of this instance for the control plane. */
  readonly reportedInstance: string;
  /** The configuration in force. */
  readonly config: () => LoadedConfig;
  /** Applies the configuration of the controller. */
  readonly refresh: () => Promise<void>;
  readonly onFailure: () => void;
}

interface CountsEvent {
  readonly body: object;
  /** The counts that the controller has after this event. */
  readonly upTo: QueueCounts;
}

/**
 * The regular calls to the control plane: the metrics every minute, and the configuration while the service runs with
 * the local one because the controller did not answer. If the controller fails, the service only logs it.
 *
 * The counts are sent as differences.
 *
 * PUSH1  Every count goes into exactly one event: the next event starts where the last accepted one ends.
 * PUSH2  If the outcome of an event is unknown (no answer, a 5xx of a gateway), the same bytes with the same `ts` are
 *     sent again before anything newer, until the event is accepted or known to be accepted (409). If the first attempt
 *     is refused (4xx), the counts go into the next event. If a later attempt is refused, that says nothing about the
 *     first.
 * PUSH3  `ts` only grows.
 *
 * So no count is lost while the process lives, and a controller that accepts each (`instance_id`, `ts`) once counts
 * nothing twice. Without that check, a controller counts an event twice if it accepted the event and its answer was
 * lost; no sender can prevent that. A crash loses the counts since the last push. Memory: one event.
 */
export class ControlPlane {
  readonly #init: ControlPlaneInit;
  #timer: unknown;
  #taken: QueueCounts | undefined;
  #unsure: CountsEvent | undefined;
  #lastTs = 0;
  #last: Promise<void> = Promise.resolve();

  constructor(init: ControlPlaneInit) {
    this.#init = init;
  }

  start(): void {
    const { clock, times } = this.#init;
    this.#timer = clock.setTimer(() => {
      void this.#turn().finally(() => this.start());
    }, times.pushEveryMs);
  }

  /**
   * Resolves if there is no controller. Rejects with a `ControllerError`; then no count is lost. Pushes run one after the
   * other, because an event must not overtake the one before it.
   */
  push(): Promise<void> {
    const pushed = this.#last.then(() => this.#push());
    this.#last = pushed.catch(() => {});
    return pushed;
  }

  /**
   * Pushes the last counts. It retries as at a start, for at most `patienceMs`. Counts that the controller did not
   * accept by then are written to the log.
   */
  async stop(patienceMs: number): Promise<void> {
    const { clock, log, times, queue } = this.#init;
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
        const counts = difference(queue.overview().counts, this.#taken);
        log.error("the controller did not accept the last metrics: these counts are only in this log line", {
          counts,
          error,
        });
        return;
      }
    }
  }

  async #turn(): Promise<void> {
    const { source, refresh, log } = this.#init;
    // `refresh` logs its own failures.
    if (source.isOnFallback) await refresh().catch(() => {});
    await this.push().catch((error: unknown) =>
      log.warn("the controller did not accept the metrics: the next push sends them again", { error }),
    );
  }

  async #push(): Promise<void> {
    if (this.#init.config().settings.controller === undefined) return;
    try {
      if (this.#unsure !== undefined) await this.#send(this.#unsure, true);
      await this.#send(await this.#nextEvent(), false);
    } catch (error) {
      this.#init.onFailure();
      throw error;
    }
  }

  async #send(event: CountsEvent, isAgain: boolean): Promise<void> {
    const { config, times } = this.#init;
    const { controller } = config().settings;
    if (controller === undefined) throw new ControllerError("refused", "no controller is configured any more");
    this.#unsure = event;
    try {
      // A 2xx means that the event is accepted. The body does not matter.
      dismiss(await postToController(controller, "metrics", event.body, times.timeoutMs));
    } catch (error) {
      if (!(error instanceof ControllerError) || error.kind !== "refused") throw error;
      if (!isAgain) this.#unsure = undefined;
      if (!isAgain || error.status !== 409) throw error;
    }
    this.#unsure = undefined;
    this.#taken = event.upTo;
  }

  async #nextEvent(): Promise<CountsEvent> {
    const { config, queue, reader, reportedInstance } = this.#init;
    // If the store does not answer, the counts are sent anyway.
    const smoothHosts = await reader.store.totals().then(
      ({ spaced }) => spaced,
      () => 0,
    );
    const { settings, version: configVersion } = config();
    const { identity } = settings;
    const { counts, at } = queue.overview();
    this.#lastTs = Math.max(Math.floor(at), this.#lastTs + 1);
    const { total, pending, granted, throttled, timeout } = queue.sessions();
    const event = {
      type: "slot_handler.snapshot",
      ts: this.#lastTs,
      configVersion,
      counts: difference(counts, this.#taken),
      sessions: { total, pending, granted, throttled, timeout },
      smoothHosts,
      appName: identity.appName,
      appVersion: identity.appVersion ?? VERSION,
      role: identity.role,
      instanceId: reportedInstance,
    };
    const body = { source: "slot-handler", env: identity.env ?? "", instance_id: reportedInstance, events: [event] };
    return { body, upTo: { ...counts } };
  }
}

/** Without `returned`, which the original service does not know. */
function difference(counts: QueueCounts, before: QueueCounts | undefined): Record<string, number> {
  const names = (Object.keys(counts) as (keyof QueueCounts)[]).filter((name) => name !== "returned");
  return Object.fromEntries(names.map((name) => [name, counts[name] - (before?.[name] ?? 0)]));
}
