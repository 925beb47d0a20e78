import { ConfigError } from "../../config/config-error.ts";
import type { Handler } from "../handler.ts";

export const health: Handler = (exchange, { live, instance, version }) => {
  const { identity } = live.config.settings;
  exchange.noContent({
    "X-App-Name": identity.appName,
    "X-App-Version": identity.appVersion ?? version,
    "X-Env": identity.env ?? "",
    "X-Role": identity.role,
    "X-Instance-Id": instance,
    "X-Config-Version": live.config.version,
  });
};

export const refresh: Handler = async (exchange, context) => {
  context.log.info("audit: refresh", { requestId: exchange.id });
  try {
    await context.refresh();
    exchange.noContent();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    exchange.problem("BAD_CONFIG", error.message);
  }
};

export const flush: Handler = async (exchange, { queue, log }) => {
  log.info("audit: flush", { requestId: exchange.id });
  try {
    const { failures, ...swept } = await queue.sweep();
    for (const error of failures) log.warn("cleanup step failed", { requestId: exchange.id, error });
    log.info("swept", { requestId: exchange.id, ...swept });
    exchange.noContent();
  } catch (error) {
    log.warn("flush failed", { requestId: exchange.id, error });
    exchange.problem("UNAVAILABLE");
  }
};
