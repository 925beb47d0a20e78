import type { QueueEvent } from "@slotkeeper/queue";
import type { Logger } from "./logger.ts";

/** Events of single sessions are logged at debug level; events that an operator must notice are logged above it. */
export function logEvent(log: Logger, event: QueueEvent, nameOf: (host: string) => string | undefined): void {
  const { type } = event;
  if (type === "store-error") {
    log.warn("store call failed", { host: event.host, operation: event.operation, error: event.error });
  } else if (type === "probe-decision") {
    log.info("probe decision", {
      host: nameOf(event.host) ?? event.host,
      ip: event.bucket,
      allowed: event.isAllowed,
      reason: event.reason,
    });
  } else if (type === "reclaimed") {
    log.info("leases expired without a release", { slots: event.slots });
  } else if (type !== "cycle" && log.isOn("debug")) {
    const { type: _type, ...fields } = event;
    log.debug(type.replaceAll("-", " "), fields);
  }
}
