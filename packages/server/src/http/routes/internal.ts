import { ConfigError, ControllerError } from "../../config/errors.ts";
import { audit } from "../audit.ts";
import type { InternalContext } from "../context.ts";
import type { Handler } from "../dispatch.ts";

export const health: Handler<InternalContext> = (exchange, { live, reportedInstance, version }) => {
  const { identity } = live.config.settings;
  exchange.empty(204, {
    "X-App-Name": headerText(identity.appName),
    "X-App-Version": headerText(identity.appVersion ?? version),
    "X-Env": headerText(identity.env ?? ""),
    "X-Role": headerText(identity.role),
    "X-Instance-Id": headerText(reportedInstance),
    "X-Config-Version": headerText(live.config.version),
  });
};

/**
 * Encodes text as UTF-8, which the other side expects. Characters that no header can carry, such as a line break,
 * become `?`.
 */
function headerText(text: string): string {
  return Buffer.from(text.replaceAll(/\p{Cc}/gu, "?")).toString("latin1");
}

export const refresh: Handler<InternalContext> = async (exchange, context) => {
  try {
    await context.refresh();
    audit(context, exchange, "refresh", { outcome: "done", version: context.live.config.version });
    exchange.empty(204);
  } catch (error) {
    const isRefused = error instanceof ConfigError || error instanceof ControllerError;
    audit(context, exchange, "refresh", { outcome: isRefused ? "refused" : "failed" });
    if (!isRefused) throw error;
    if (error instanceof ConfigError) exchange.problem("BAD_CONFIG", error.message);
    else exchange.problem("CONTROLLER_UNREACHABLE", `${error.message}. The service keeps the old configuration.`);
  }
};

/** Runs each step even if another one fails. The answer names the steps that failed. */
export const flush: Handler<InternalContext> = async (exchange, context) => {
  const { log } = context;
  const { swept, failures } = await context.flush();
  for (const { step, error } of failures) log.warn("flush: a step failed", { requestId: exchange.id, step, error });
  const steps = failures.map(({ step }) => step);
  audit(context, exchange, "flush", { outcome: steps.length === 0 ? "done" : "failed", ...swept, failed: steps });
  if (steps.length === 0) exchange.empty(204);
  else {
    const isOnlyPush = steps.every((step) => step === "metrics push");
    exchange.problem(
      isOnlyPush ? "CONTROLLER_UNREACHABLE" : "UNAVAILABLE",
      `Failed: ${[...new Set(steps)].join(", ")}. The rest was done.${isOnlyPush ? " The counts go with the next push." : ""}`,
    );
  }
};
