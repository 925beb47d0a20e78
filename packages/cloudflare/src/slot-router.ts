import { hostOfToken } from "@slotkeeper/queue";
import { NODE_DIGESTS } from "@slotkeeper/server/node-crypto";
import {
  type Access,
  answering,
  type CALLER_ROUTES,
  type DispatchContext,
  type Exchange,
  type Handler,
  hostInPath,
  hostKeys,
  type JsonObject,
  namedHost,
  type OPERATOR_ROUTES,
  RequestLog,
  Router,
  segmentOf,
  slotNamed,
  unverifiedHost,
} from "@slotkeeper/server/portable";
import { consoleLog } from "./console-log.ts";
import type { FetchExchange } from "./fetch-exchange.ts";
import type { SlotNamespace, SlotStub } from "./workers.ts";

/** Where the objects are. */
export interface Placement {
  /**
   * Where a new object should be created, for example `weur` or `enam`: near the callers of the host, not near its users.
   * Default: near the first caller. An object never moves.
   */
  readonly locationHint?: string | undefined;
  /** Keeps objects and their data in a jurisdiction, for example `eu`. Objects of another jurisdiction are other objects. */
  readonly jurisdiction?: string | undefined;
}

interface RouterContext extends DispatchContext {
  readonly exchange: FetchExchange;
  readonly objects: SlotObjects;
}

type CallRoute = keyof typeof CALLER_ROUTES;
type OperatorRoute = keyof typeof OPERATOR_ROUTES;

const keyOf = hostKeys(NODE_DIGESTS);
const DIRECTORY = { names: new Map<string, string>(), keyOf };
const text = (value: unknown) => (typeof value === "string" ? value : "");

/**
 * Which host a call is about. Nothing here is verified: the object that it leads to checks the call. Undefined: the call
 * names no host, and any object can answer why it is refused.
 */
const HOST_OF: { readonly [name in CallRoute]: (body: JsonObject) => string | undefined } = {
  acquire: (body) => (text(body["queryToken"]) === "" ? hostNamedBy(body) : HOST_OF.cancel(body)),
  release: ({ slotToken }) => hostOfToken(text(slotToken)),
  renew: ({ slotToken }) => hostOfToken(text(slotToken)),
  cancel: ({ queryToken }) => unverifiedHost(text(queryToken), NODE_DIGESTS, keyOf),
  report: (body) => hostNamedBy(body),
};

/** The same for operators. `directory`: the call is about all hosts. */
const OPERATED: { readonly [name in OperatorRoute]: (exchange: Exchange) => Target } = {
  state: ({ query }) => hostAsked(query),
  history: ({ query }) => hostAsked(query),
  instances: () => "directory",
  events: () => "directory",
  limits: (exchange) => hostOfPath(exchange),
  breaker: (exchange) => hostOfPath(exchange),
  pause: (exchange) => hostOfPath(exchange),
  revoke: (exchange) => toHost(slotNamed(segmentOf(exchange, 1) ?? "")?.host),
};

/** The object that answers a call: of a host, or the directory of all hosts. */
export type Target = "directory" | { readonly host: string };

function toHost(host: string | undefined): Target {
  return { host: host ?? "" };
}

function hostNamedBy(body: JsonObject): string | undefined {
  const names = { hostname: text(body["hostname"]), hostnameHash: text(body["hostnameHash"]) };
  const named = namedHost(names, DIRECTORY);
  return named === undefined || "field" in named ? undefined : named.host;
}

function hostAsked(query: URLSearchParams): Target {
  const host = query.get("host");
  return host === null ? "directory" : hostInQuery(host, query);
}

function hostOfPath(exchange: Exchange): Target {
  return hostInQuery(segmentOf(exchange, 1), exchange.query);
}

function hostInQuery(host: string | undefined, query: URLSearchParams): Target {
  return toHost(host === undefined || host === "" ? undefined : hostInPath(host, query.get("by"), keyOf));
}

const forwardCall =
  (name: CallRoute): Handler<RouterContext> =>
  (_, context, body) =>
    forward(context, toHost(HOST_OF[name](body)), JSON.stringify(body));

const forwardOperation =
  (name: OperatorRoute): Handler<RouterContext> =>
  (exchange, context, body) =>
    forward(context, OPERATED[name](exchange), exchange.method === "POST" ? JSON.stringify(body) : null);

const CALLS = Object.keys(HOST_OF).map((name) => [name, forwardCall(name as CallRoute)] as const);
const OPERATIONS = Object.keys(OPERATED).map((name) => [name, forwardOperation(name as OperatorRoute)] as const);

/** Without a shared key, access to the routes of callers is open: they are served only where that is meant. */
const ROUTERS = {
  everything: new Router<RouterContext>(Object.fromEntries([...CALLS, ...OPERATIONS])),
  operators: new Router<RouterContext>(Object.fromEntries(OPERATIONS)),
};
const requestLog = new RequestLog(consoleLog);

/** Checks access, finds the object of the call and passes the call on. The checks are those of the service for Node. */
export async function route(
  exchange: FetchExchange,
  routes: keyof typeof ROUTERS,
  access: Access,
  objects: SlotObjects,
): Promise<Response> {
  const context: RouterContext = { exchange, objects, requestLog, live: { access } };
  await answering(exchange, context, () => ROUTERS[routes].serve(exchange, context));
  if (exchange.status === 0) exchange.leave();
  return exchange.response;
}

/**
 * The signal of an incoming request does not cancel a call to an object that it is passed to, so the call has its own. Every
 * call may be repeated, so one that failed because the object was restarted is sent once more.
 */
async function forward({ exchange, objects }: RouterContext, target: Target, body: string | null): Promise<void> {
  const controller = new AbortController();
  exchange.onLeave(() => controller.abort());
  if (exchange.leaving !== undefined) return;
  const { method, path, query, id, peer } = exchange;
  const search = query.size === 0 ? "" : `?${query.toString()}`;
  const prefer = exchange.header("prefer");
  const own = { "content-type": "application/json", "x-request-id": id, "cf-connecting-ip": peer };
  const headers = prefer === undefined ? own : { ...own, prefer };
  const send = () =>
    objects
      .of(target)
      .fetch(`http://${urlHost(target)}${path}${search}`, { method, headers, body, signal: controller.signal });
  try {
    exchange.relay(
      await send().catch((error: unknown) => (mayRepeat(error, controller) ? send() : Promise.reject(error))),
    );
  } catch (error) {
    if (controller.signal.aborted) return;
    requestLog.failed(exchange, error);
    exchange.problem("UNAVAILABLE", "The Durable Object did not answer", { headers: { "Retry-After": 1 } });
  }
}

function mayRepeat(error: unknown, { signal }: AbortController): boolean {
  return !signal.aborted && (error as { overloaded?: boolean }).overloaded !== true;
}

/** An object reads from it which of its two roles it has. */
function urlHost(target: Target): string {
  return target === "directory" ? "directory" : "host";
}

/** The objects of a binding, by what they are for. */
export class SlotObjects {
  readonly #namespace: SlotNamespace;
  readonly #hint: { locationHint?: string };

  constructor(namespace: SlotNamespace, { locationHint, jurisdiction }: Placement) {
    this.#namespace = jurisdiction === undefined ? namespace : namespace.jurisdiction(jurisdiction);
    this.#hint = locationHint === undefined ? {} : { locationHint };
  }

  of(target: Target): SlotStub {
    const name = target === "directory" ? "directory" : `host:${target.host}`;
    return this.#namespace.get(this.#namespace.idFromName(name), this.#hint);
  }
}
