import { audit } from "../../audit/audit.ts";
import { ConfigError } from "../../config/config-error.ts";
import { ControllerError } from "../../control-plane/controller-error.ts";
import type { Handler } from "../handler.ts";

export const health: Handler = (exchange, { live, reportedInstance, version }) => {
  const { identity } = live.config.settings;
  exchange.noContent({
    "X-App-Name": identity.appName,
    "X-App-Version": identity.appVersion ?? version,
    "X-Env": identity.env ?? "",
    "X-Role": identity.role,
    "X-Instance-Id": reportedInstance,
    "X-Config-Version": live.config.version,
  });
};

export const refresh: Handler = async (exchange, context) => {
  try {
    await context.refresh();
    audit(context, exchange, "refresh", { outcome: "done", version: context.live.config.version });
    exchange.noContent();
  } catch (error) {
    const isRefused = error instanceof ConfigError || error instanceof ControllerError;
    audit(context, exchange, "refresh", { outcome: isRefused ? "refused" : "failed" });
    if (!isRefused) throw error;
    exchange.problem(error instanceof ConfigError ? "BAD_CONFIG" : "CONTROLLER_UNREACHABLE", error.message);
  }
};

/** Each step is taken whatever became of the others; the answer names those that failed. */
export const flush: Handler = async (exchange, context) => {
  const { log } = context;
  const { swept, failures } = await context.flush();
  for (const { step, error } of failures) log.warn("flush: a step failed", { requestId: exchange.id, step, error });
  const steps = failures.map(({ step }) => step);
  audit(context, exchange, "flush", { outcome: steps.length === 0 ? "done" : "failed", ...swept, failed: steps });
  if (steps.length === 0) exchange.noContent();
  else {
    const isOnlyPush = steps.every((step) => step === "metrics push");
    exchange.problem(
      isOnlyPush ? "CONTROLLER_UNREACHABLE" : "UNAVAILABLE",
      `Failed: ${steps.join(", ")}. The rest was done.`,
    );
  }
};
