import type { IncomingMessage } from "node:http";
import type { Exchange } from "./exchange.ts";

/** Lets browsers of the named origins call. Sets the headers every answer needs; true: it was a preflight, answered. */
export function applyCors(exchange: Exchange, origins: readonly string[], authHeader: string): boolean {
  const { request, response } = exchange;
  if (origins.length === 0) return false;
  response.setHeader("Vary", "Origin");
  const { origin } = request.headers;
  if (origin === undefined || !isListed(origin, origins)) return false;
  response.setHeader("Access-Control-Allow-Origin", origin);
  response.setHeader("Access-Control-Expose-Headers", "Retry-After, X-Request-Id");
  if (request.method !== "OPTIONS" || request.headers["access-control-request-method"] === undefined) return false;
  exchange.noContent({
    "Access-Control-Allow-Methods": "POST",
    "Access-Control-Allow-Headers": `Content-Type, X-Request-Id, traceparent, ${authHeader}`,
    "Access-Control-Max-Age": 600,
  });
  return true;
}

/**
 * Whether a page of another origin sent this by way of a browser: it needs no permission to post plain text. Where no
 * key is asked for, that alone would let any page on the web act for its visitors. A page of this service's own
 * origin may, unless that is a name: a name can be made to point here by its owner.
 */
export function isFromForeignPage({ headers }: IncomingMessage, origins: readonly string[]): boolean {
  const { origin, host = "" } = headers;
  if (origin === undefined || isListed(origin, origins)) return false;
  return !(isOwnOrigin(origin, host) && OWN_HOST.test(host));
}

export function isOwnOrigin(origin: string, host: string): boolean {
  return origin.replace(/^https?:\/\//, "") === host;
}

/** An address or localhost: no owner of a name can make these point here. */
const OWN_HOST = /^(?:localhost|\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-f:.]+\])(?::\d+)?$/i;

function isListed(origin: string, origins: readonly string[]): boolean {
  return origins.includes(origin) || origins.includes("*");
}
