import type { Exchange } from "./exchange.ts";

/** Lets browsers of the named origins call. Sets the headers every answer needs; true: it was a preflight, answered. */
export function applyCors(exchange: Exchange, origins: readonly string[], authHeader: string): boolean {
  const { request, response } = exchange;
  if (origins.length === 0) return false;
  response.setHeader("Vary", "Origin");
  const origin = request.headers.origin;
  if (origin === undefined || !(origins.includes(origin) || origins.includes("*"))) return false;
  response.setHeader("Access-Control-Allow-Origin", origin);
  response.setHeader("Access-Control-Expose-Headers", "Retry-After, X-Request-Id");
  if (request.method !== "OPTIONS" || request.headers["access-control-request-method"] === undefined) return false;
  exchange.noContent({
    "Access-Control-Allow-Methods": "POST",
    "Access-Control-Allow-Headers": `Content-Type, X-Request-Id, ${authHeader}`,
    "Access-Control-Max-Age": 600,
  });
  return true;
}
