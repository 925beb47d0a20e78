import type { Audience } from "@slotkeeper/protocol/schemas";
import type { Settings } from "../config/settings.ts";
import type { Digests } from "../platform/digests.ts";
import type { Exchange } from "./exchange.ts";
import { HOLDERS_HEADER } from "./holder-traces.ts";

/** What decides about access. */
export type AccessSettings = Pick<
  Settings,
  "auth" | "authHeader" | "internalApiToken" | "metricsToken" | "corsOrigins"
>;

/** Decides which callers may use which routes, and from which pages, for one configuration. */
export class Access {
  readonly #origins: readonly string[];
  readonly #shared: SecretSet | undefined;
  readonly #internal: SecretSet | undefined;
  readonly #scraper: SecretSet | undefined;
  /** The header of the shared key, as configured and in lower case. */
  readonly header: string;
  readonly #headerName: string;

  constructor(settings: AccessSettings, digests: Digests) {
    const { auth, authHeader, internalApiToken, metricsToken, corsOrigins } = settings;
    const setOf = (...secrets: (string | undefined)[]) => {
      const given = secrets.filter((secret) => secret !== undefined);
      return given.length === 0 ? undefined : new SecretSet(given, digests);
    };
    this.header = authHeader;
    this.#headerName = authHeader.toLowerCase();
    this.#origins = corsOrigins;
    this.#shared = auth === undefined ? undefined : new SecretSet(auth.keys, digests);
    this.#internal = setOf(internalApiToken);
    this.#scraper = setOf(metricsToken, internalApiToken);
  }

  admits(audience: Audience, exchange: Exchange): boolean {
    switch (audience) {
      case "public":
        return true;
      case "caller":
        return this.#shared === undefined || this.#shared.has(exchange.header(this.#headerName) ?? "");
      case "internal":
        return this.#internal !== undefined && hasBearer(exchange, this.#internal);
      case "operator":
        return admitsLocally(this.#internal, exchange);
      case "scraper":
        return admitsLocally(this.#scraper, exchange);
    }
  }

  /**
   * Lets browsers of the configured origins call the service. Sets the headers of every answer. Returns true if it
   * answered a preflight.
   */
  applyCors(exchange: Exchange): boolean {
    if (this.#origins.length === 0) return false;
    exchange.setHeader("Vary", "Origin");
    const origin = exchange.header("origin");
    if (origin === undefined || !this.#isListed(origin)) return false;
    exchange.setHeader("Access-Control-Allow-Origin", origin);
    exchange.setHeader(
      "Access-Control-Expose-Headers",
      `Retry-After, RateLimit, RateLimit-Policy, Preference-Applied, X-Request-Id, ${HOLDERS_HEADER}`,
    );
    if (exchange.method !== "OPTIONS" || exchange.header("access-control-request-method") === undefined) return false;
    exchange.empty(204, {
      "Access-Control-Allow-Methods": "POST",
      "Access-Control-Allow-Headers": `Content-Type, Prefer, X-Request-Id, traceparent, ${this.header}`,
      "Access-Control-Max-Age": 600,
    });
    return true;
  }

  /**
   * Whether a browser sent this for a page of another origin. A page needs no permission to post plain text. Without a
   * shared key, any page on the web could act for its visitors. A page of this service's own origin is allowed if the
   * origin is an address or localhost. A name is not enough: its owner can make it point here.
   */
  isFromForeignPage(exchange: Exchange): boolean {
    const origin = exchange.header("origin");
    if (this.#shared !== undefined || origin === undefined || this.#isListed(origin)) return false;
    const host = exchange.header("host") ?? "";
    return !(isOwnOrigin(origin, host) && OWN_HOST.test(host));
  }

  #isListed(origin: string): boolean {
    return this.#origins.includes(origin) || this.#origins.includes("*");
  }
}

/** An address or localhost: the owner of a name cannot make these point here. */
const OWN_HOST = /^(?:localhost|\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-f:.]+\])(?::\d+)?$/i;

export function isOwnOrigin(origin: string, host: string): boolean {
  return origin.replace(/^https?:\/\//, "") === host;
}

/** The bearer decides; if none is set, callers on this machine are admitted. */
function admitsLocally(bearers: SecretSet | undefined, exchange: Exchange): boolean {
  return bearers === undefined ? exchange.isLocal : hasBearer(exchange, bearers);
}

function hasBearer(exchange: Exchange, bearers: SecretSet): boolean {
  const [, token] = /^Bearer +(\S+) *$/i.exec(exchange.header("authorization") ?? "") ?? [];
  return token !== undefined && bearers.has(token);
}

/**
 * A few secrets. The time of a comparison does not depend on them: digests have one length, every secret is compared,
 * and the loop does not stop at a match.
 */
class SecretSet {
  readonly #digests: Digests;
  readonly #known: readonly string[];

  constructor(secrets: readonly string[], digests: Digests) {
    this.#digests = digests;
    this.#known = secrets.map((secret) => digests.sha256(secret, "hex"));
  }

  has(given: string): boolean {
    const asked = this.#digests.sha256(given, "hex");
    let isKnown = false;
    for (const known of this.#known) isKnown = this.#digests.isSame(asked, known) || isKnown;
    return isKnown;
  }
}
