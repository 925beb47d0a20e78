import type { Exchange } from "../http/exchange.ts";
import type { ServiceContext } from "../http/service-context.ts";
import type { LogFields } from "../log/logger.ts";

/** What an operator can do. */
export type AuditedAction = "refresh" | "flush" | "limits" | "breaker" | "revoke";

/**
 * Writes the record of an operator's action: the peer address, the request, and the outcome. It is written at every log
 * level and sent to all listeners. There is one record for each action, after it.
 */
export function audit(
  { log, telemetry, instance }: ServiceContext,
  { request, id }: Exchange,
  action: AuditedAction,
  fields: LogFields & { readonly outcome: "done" | "refused" | "failed" },
): void {
  const peer = request.socket.remoteAddress ?? "unknown";
  log.audit(action, { requestId: id, peer, ...fields });
  telemetry.hub.say("audit", { at: Date.now(), instance, action, peer, ...fields });
}
