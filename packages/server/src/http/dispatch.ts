import { ROUTE_PATHS, type RouteName, type RoutePath } from "@slotkeeper/protocol/schemas";
import { LogThrottle } from "../log/log-throttle.ts";
import type { Logger } from "../log/logger.ts";
import type { Access } from "./access.ts";
import type { Exchange, JsonObject } from "./exchange.ts";
import { traceparentOf } from "./holder-traces.ts";

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
