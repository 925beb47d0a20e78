import type { IncomingMessage } from "node:http";
import type { Exchange } from "./exchange.ts";

/**
 * Lets browsers of the configured origins call the service. Sets the headers of every answer. Returns true if it
 * answered a preflight.
 */
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
 * Whether a browser sent this for a page of another origin. A page needs no permission to post plain text. Without a
 * shared key, any page on the web could act for its visitors. A page of this service's own origin is allowed if the
 * origin is an address or localhost. A name is not enough: its owner can make it point here.
 */
export function isFromForeignPage({ headers }: IncomingMessage, origins: readonly string[]): boolean {
  const { origin, host = "" } = headers;
  if (origin === undefined || isListed(origin, origins)) return false;
  return !(isOwnOrigin(origin, host) && OWN_HOST.test(host));
}

export function isOwnOrigin(origin: string, host: string): boolean {
  return origin.replace(/^https?:\/\//, "") === host;
}

/** An address or localhost: the owner of a name cannot make these point here. */
const OWN_HOST = /^(?:localhost|\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-f:.]+\])(?::\d+)?$/i;

function isListed(origin: string, origins: readonly string[]): boolean {
  return origins.includes(origin) || origins.includes("*");
}
