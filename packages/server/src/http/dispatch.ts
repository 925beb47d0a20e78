import { type Audience, ROUTE_PATHS, type RouteName, type RoutePath } from "@slotkeeper/protocol/schemas";
import type { Settings } from "../config/settings.ts";
import { LogThrottle } from "../log/log-throttle.ts";
import type { Logger } from "../log/logger.ts";
import type { Digests } from "../platform/digests.ts";
import type { Exchange, JsonObject } from "./exchange.ts";
import { HOLDERS_HEADER, traceparentOf } from "./holder-traces.ts";

/** Answers one exchange, or throws; then `answering` answers it. `body` is empty for a route without one. */
export type Handler<C> = (exchange: Exchange, context: C, body: JsonObject) => void | Promise<void>;

/** Routes of the contract with their handlers. */
export type RouteTable<C> = { readonly [name in RouteName]?: Handler<C> };

interface BoundRoute<C> {
  readonly route: RoutePath;
  readonly handle: Handler<C>;
}

/** What serving needs beside what its handlers need. */
export interface DispatchContext {
  readonly requestLog: Pick<RequestLog, "done" | "failed">;
  readonly live: { readonly access: Access };
}

/** Runs what answers one request, and logs it. An error in one request does not affect others. */
export async function answering(
  exchange: Exchange,
  { requestLog }: Pick<DispatchContext, "requestLog">,
  answer: () => void | Promise<void>,
): Promise<void> {
  const startedAt = performance.now();
  try {
    await answer();
  } catch (error) {
    requestLog.failed(exchange, error);
    exchange.fail();
  }
  requestLog.done(exchange, performance.now() - startedAt);
}

/** Finds the route of an exchange, checks access, reads the body and calls the handler. */
export class Router<C extends DispatchContext> {
  readonly #byPath = new Map<string, BoundRoute<C>>();
  /** Routes with a `{parameter}`: there are few, and they are tried only if no exact path matches. */
  readonly #byPattern: { readonly pattern: RegExp; readonly bound: BoundRoute<C> }[] = [];

  constructor(table: RouteTable<C>) {
    for (const [name, handle] of Object.entries(table)) {
      const route: RoutePath = ROUTE_PATHS[name as RouteName];
      const bound = { route, handle };
      if (!route.path.includes("{")) this.#byPath.set(route.path, bound);
      else this.#byPattern.push({ pattern: new RegExp(`^${route.path.replaceAll(/\{\w+\}/g, "[^/]+")}$`), bound });
    }
  }

  /** Every path has one method. Another method is a mistake of the caller, not another route. */
  serve(exchange: Exchange, context: C): void | Promise<void> {
    const { access } = context.live;
    const { path, method } = exchange;
    const bound = this.#byPath.get(path) ?? this.#byPattern.find(({ pattern }) => pattern.test(path))?.bound;
    if (bound === undefined) return exchange.problem("NOT_FOUND");
    const { route, handle } = bound;
    const { audience } = route;
    if (audience === "caller" && access.applyCors(exchange)) return;
    // For callers without access an internal route does not exist, so 404 comes before every other refusal.
    const isHidden = audience !== "public" && audience !== "caller";
    const isAdmitted = access.admits(audience, exchange);
    if (isHidden && !isAdmitted) return exchange.problem("NOT_FOUND");
    if (method !== route.method && !(method === "HEAD" && route.method === "GET")) {
      const Allow = route.method === "GET" ? "GET, HEAD" : route.method;
      return exchange.problem("METHOD_NOT_ALLOWED", undefined, { headers: { Allow } });
    }
    if (!isAdmitted) {
      const headers = { "WWW-Authenticate": `SharedKey header="${access.header}"` };
      return exchange.problem("UNAUTHORIZED", undefined, { headers });
    }
    if (audience === "caller" && access.isFromForeignPage(exchange)) return exchange.problem("FOREIGN_ORIGIN");
    return route.hasBody === true ? serveBody(exchange, handle, context) : handle(exchange, context, {});
  }
}

async function serveBody<C>(exchange: Exchange, handle: Handler<C>, context: C): Promise<void> {
  const body = await exchange.body();
  switch (body.kind) {
    case "object":
      return handle(exchange, context, body.value);
    case "bad-json":
      exchange.problem("BAD_JSON", body.detail);
      return;
    case "too-large":
      exchange.problem("BODY_TOO_LARGE", undefined, body.isDrained ? {} : { headers: { Connection: "close" } });
  }
}

/** Limits lines that any caller can cause to a few per second. */
const LIMIT = { burst: 50, everyMs: 100 } as const;
const LONGEST_PATH = 200;

/**
 * One line for each request, at its end: refusals at info, failures at warn, all others at debug. So a busy service
 * does not fill the log, and lines that callers can cause are short and limited in number.
 */
export class RequestLog {
  readonly #log: Logger;
  readonly #throttles = {
    error: new LogThrottle(LIMIT),
    warn: new LogThrottle(LIMIT),
    info: new LogThrottle(LIMIT),
  };

  constructor(log: Logger) {
    this.#log = log;
  }

  done(exchange: Exchange, tookMs: number): void {
    const { status } = exchange;
    const level = status >= 500 ? "warn" : status >= 400 ? "info" : "debug";
    if (!this.#log.isOn(level)) return;
    const kept = level === "debug" ? {} : this.#admit(level);
    if (kept === undefined) return;
    const outcome = status === 0 ? { hungUp: true } : { status, code: exchange.problemCode };
    const asked = {
      requestId: exchange.id,
      ...traceId(exchange),
      method: exchange.method,
      path: shortened(exchange.path),
    };
    this.#log[level]("request", { ...asked, ...outcome, durationMs: Math.round(tookMs), ...kept });
  }

  failed(exchange: Exchange, error: unknown): void {
    const kept = this.#admit("error");
    if (kept === undefined) return;
    const asked = { requestId: exchange.id, ...traceId(exchange), path: shortened(exchange.path) };
    this.#log.error("request failed", { ...asked, error, ...kept });
  }

  /** Returns `undefined` if the line is not logged. */
  #admit(level: "error" | "warn" | "info"): { unlogged?: number } | undefined {
    const unlogged = this.#throttles[level].take();
    if (unlogged === undefined) return undefined;
    return unlogged === 0 ? {} : { unlogged };
  }
}

/** The trace of the caller, to find the line from it. */
function traceId(exchange: Exchange): { traceId?: string } {
  const traceparent = traceparentOf(exchange);
  return traceparent === undefined ? {} : { traceId: traceparent.slice(3, 35) };
}

function shortened(path: string): string {
  return path.length <= LONGEST_PATH ? path : `${path.slice(0, LONGEST_PATH)}…`;
}

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
