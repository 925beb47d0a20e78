import type { QueueEvent } from "@slotkeeper/queue";
import type { Logger } from "../log/logger.ts";

/** What an `EventLog` needs. */
export interface EventLogInit {
  readonly log: Logger;
  /** The name of a host, if a caller sent it. */
  readonly nameOf: (host: string) => string | undefined;
  readonly now: () => number;
}

/** How often a host may report refused buckets. */
const WINDOWS_EVERY_MS = 60_000;
/** The hosts whose windows are counted. Of more hosts, the count of the one that was reported first is lost. */
const MOST_HOSTS = 10_000;

interface Windows {
  reportedAt: number;
  /** Since the last report. */
  count: number;
}

/** Events of single sessions are logged at debug level; events that an operator must notice are logged above it. */
export class EventLog {
  readonly #init: EventLogInit;
  readonly #windows = new Map<string, Windows>();

  constructor(init: EventLogInit) {
    this.#init = init;
  }

  add(event: QueueEvent): void {
    const { log } = this.#init;
    const { type } = event;
    if (type === "store-error") {
      log.warn("store call failed", { host: event.host, operation: event.operation, error: event.error });
    } else if (type === "probe-decision") {
      this.#addWindow(event);
    } else if (type === "reclaimed") {
      const { host, bucket, fence } = event;
      log.info("a lease expired without a release", { host: this.#shown(host), bucket, fence });
    } else if (type !== "cycle" && log.isOn("debug")) {
      const { type: _type, ...fields } = event;
      log.debug(type.replaceAll("-", " "), fields);
    }
  }

  /**
   * A busy host has many windows in a second. At info it reports one of them, with the number since the last report; at
   * debug all of them are logged.
   */
  #addWindow({ host, bucket, isAllowed, reason }: QueueEvent & { type: "probe-decision" }): void {
    const { log, now } = this.#init;
    const decision = { host: this.#shown(host), ip: bucket, allowed: isAllowed, reason };
    const windows = this.#windows.get(host);
    if (windows !== undefined && now() < windows.reportedAt + WINDOWS_EVERY_MS) {
      windows.count++;
      log.debug("probe decision", decision);
      return;
    }
    log.info("probe decision", { ...decision, windows: (windows?.count ?? 0) + 1 });
    // Moved to the end: the first entry is the one that was reported first.
    this.#windows.delete(host);
    this.#windows.set(host, { reportedAt: now(), count: 0 });
    const [oldest] = this.#windows.keys();
    if (this.#windows.size > MOST_HOSTS && oldest !== undefined) this.#windows.delete(oldest);
  }

  #shown(host: string): string {
    return this.#init.nameOf(host) ?? host;
  }
}
