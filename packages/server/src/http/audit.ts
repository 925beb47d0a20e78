import type { LogFields } from "../log/logger.ts";
import type { InternalContext } from "./context.ts";
import type { Exchange } from "./exchange.ts";

/** What an operator can do. */
export type AuditedAction = "refresh" | "flush" | "limits" | "breaker" | "pause" | "revoke";

/**
 * Writes the record of an operator's action: the peer address, the request, and the outcome. It is written at every log
 * level and sent to all listeners. There is one record for each action, after it.
 */
export function audit(
  { log, telemetry, instance }: Pick<InternalContext, "log" | "telemetry" | "instance">,
  { peer, id }: Exchange,
  action: AuditedAction,
  fields: LogFields & { readonly outcome: "done" | "refused" | "failed" },
): void {
  log.audit(action, { requestId: id, peer, ...fields });
  telemetry.hub.say("audit", { at: Date.now(), instance, action, peer, ...fields });
}
