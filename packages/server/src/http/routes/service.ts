import { openApiDocument, type RouteName } from "@slotkeeper/protocol/schemas";
import { ConfigError, ControllerError } from "../../config/errors.ts";
import { scrape } from "../../telemetry/scrape.ts";
import { audit } from "../audit.ts";
import type { InternalContext, Live, ServiceContext } from "../context.ts";
import { asset, home } from "../dashboard.ts";
import { type Handler, Router } from "../dispatch.ts";
import { CALLER_ROUTES, OPERATOR_ROUTES } from "../routes.ts";

const health: Handler<InternalContext> = (exchange, { live, reportedInstance, version }) => {
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

const refresh: Handler<InternalContext> = async (exchange, context) => {
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
const flush: Handler<InternalContext> = async (exchange, context) => {
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

const livez: Handler<ServiceContext> = (exchange) => exchange.json({ status: "ok" });

const readyz: Handler<ServiceContext> = async (exchange, { readiness }) => {
  const outcome = await readiness.read();
  if (!outcome.isReady) exchange.problem("NOT_READY", outcome.detail, { reason: outcome.reason });
  else if (outcome.weaknesses.length === 0) exchange.json({ status: "ok" });
  else exchange.json({ status: "ok", degraded: outcome.weaknesses });
};

/** The document in bytes, made once for each configuration that is in use. */
const documents = new WeakMap<Live, Buffer>();

const openapi: Handler<ServiceContext> = (exchange, { live, version }) => {
  let bytes = documents.get(live);
  if (bytes === undefined) {
    bytes = Buffer.from(JSON.stringify(openApiDocument({ version, header: live.config.settings.authHeader })));
    documents.set(live, bytes);
  }
  exchange.send(200, "application/json", bytes);
};

const metrics: Handler<ServiceContext> = async (exchange, context) => {
  exchange.send(200, "text/plain; version=0.0.4; charset=utf-8", await scrape(context));
};

/** All routes of the contract: those of callers and operators, and those that need this process. */
const SERVICE_ROUTES = {
  ...CALLER_ROUTES,
  ...OPERATOR_ROUTES,
  health,
  refresh,
  flush,
  metrics,
  livez,
  readyz,
  openapi,
  home,
  asset,
} satisfies Record<RouteName, Handler<ServiceContext>>;

export const SERVICE_ROUTER = new Router<ServiceContext>(SERVICE_ROUTES);
