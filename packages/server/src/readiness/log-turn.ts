import type { Logger } from "../log/logger.ts";
import type { Readiness } from "./readiness.ts";

/** Logs what `/readyz` answers with a code and a sentence, and adds the error of the store for the person on call. */
export function logTurn(log: Logger, outcome: Readiness, error: unknown): void {
  if (!outcome.isReady) log.warn("not ready", { reason: outcome.reason, detail: outcome.detail, error });
  else if (outcome.weaknesses.length > 0) log.warn("ready, but degraded", { degraded: outcome.weaknesses });
  else log.info("ready");
}
