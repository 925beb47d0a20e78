import type { IncomingMessage, ServerResponse } from "node:http";
import { newRequestId } from "../tokens/random-names.ts";
import { applyCors, isFromForeignPage } from "./cors.ts";
import { Exchange } from "./exchange.ts";
import type { BodyHandler } from "./handler.ts";
import { readBody } from "./read-body.ts";
import { answerTooBusy, type LimitName } from "./refusals.ts";
import { hasOneHost, normaliseTarget } from "./request-target.ts";
import { allowedMethods, findRoute, takesMethod } from "./router.ts";
import type { ServiceContext } from "./service-context.ts";

/**
 * Handles one request: finds its route, checks access, reads the body, calls the handler and logs. An error in one
 * request does not affect others. `refusal` is set if its connection is above a limit.
 */
export async function dispatch(
  request: IncomingMessage,
  response: ServerResponse,
  context: ServiceContext,
  refusal: LimitName | undefined,
): Promise<void> {
  const startedAt = performance.now();
  normaliseTarget(request);
  const exchange = new Exchange(request, response, requestIdOf(request), pathOf(request));
  if (context.held.isDraining) response.setHeader("Connection", "close");
  try {
    if (refusal !== undefined) answerTooBusy(exchange, refusal, { Connection: "close" });
    else await serve(exchange, context);
  } catch (error) {
    context.requestLog.failed(exchange, error);
    if (response.headersSent) response.destroy();
    else exchange.problem("INTERNAL");
  }
  context.requestLog.done(exchange, performance.now() - startedAt);
}

function serve(exchange: Exchange, context: ServiceContext): void | Promise<void> {
  const { request } = exchange;
  const { guards, config } = context.live;
  if (!hasOneHost(request)) {
    return exchange.problem("BAD_REQUEST", "Expected exactly one `Host` header", { headers: { Connection: "close" } });
  }
  const bound = findRoute(exchange.path);
  if (bound === undefined) return exchange.problem("NOT_FOUND");
  const { route } = bound;
  const { corsOrigins, authHeader } = config.settings;
  if (route.audience === "caller" && applyCors(exchange, corsOrigins, authHeader)) return;
  // For callers without access an internal route does not exist, so 404 comes before every other refusal.
  const isHidden = route.audience !== "public" && route.audience !== "caller";
  const isAdmitted = guards.admits(route.audience, request, context.isBoundToLoopback());
  if (isHidden && !isAdmitted) return exchange.problem("NOT_FOUND");
  if (!takesMethod(route, request.method)) {
    return exchange.problem("METHOD_NOT_ALLOWED", undefined, { headers: { Allow: allowedMethods(route) } });
  }
  if (!isAdmitted) {
    return exchange.problem("UNAUTHORIZED", undefined, {
      headers: { "WWW-Authenticate": `SharedKey header="${authHeader}"` },
    });
  }
  if (route.audience === "caller" && config.settings.auth === undefined && isFromForeignPage(request, corsOrigins)) {
    return exchange.problem("FOREIGN_ORIGIN");
  }
  return "plain" in bound ? bound.plain(exchange, context) : serveBody(exchange, bound.body, context);
}

async function serveBody(exchange: Exchange, handler: BodyHandler, context: ServiceContext): Promise<void> {
  const body = await readBody(exchange.request);
  switch (body.kind) {
    case "object":
      return handler(exchange, body.value, context);
    case "bad-json":
      exchange.problem("BAD_JSON", body.detail);
      return;
    case "too-large":
      exchange.problem("BODY_TOO_LARGE", undefined, body.isDrained ? {} : { headers: { Connection: "close" } });
  }
}

/** Keeps the id of the caller if it is harmless, so that the logs of both sides can be compared. */
function requestIdOf({ headers }: IncomingMessage): string {
  const given = headers["x-request-id"];
  return typeof given === "string" && /^[\w.:-]{1,64}$/.test(given) ? given : newRequestId();
}

function pathOf({ url = "/" }: IncomingMessage): string {
  const query = url.indexOf("?");
  return query === -1 ? url : url.slice(0, query);
}
