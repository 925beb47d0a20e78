import { ROUTES, type Route, type RouteName } from "@slotkeeper/protocol/schemas";
import { asset, home } from "./dashboard/dashboard-routes.ts";
import type { BodyHandler, Handler } from "./handler.ts";
import { acquire } from "./routes/acquire.ts";
import { flush, health, refresh } from "./routes/internal.ts";
import { events, history, instances, metrics } from "./routes/live.ts";
import { breaker, limits, revoke } from "./routes/operate.ts";
import { livez, openapi, readyz } from "./routes/root.ts";
import { cancel, release, renew, report } from "./routes/slots.ts";
import { state } from "./routes/state.ts";

/** A route with its handler; `body` if the route has a request body. */
export type BoundRoute = { readonly route: Route } & ({ readonly body: BodyHandler } | { readonly plain: Handler });

const HANDLERS = {
  acquire: { body: acquire },
  release: { body: release },
  renew: { body: renew },
  cancel: { body: cancel },
  report: { body: report },
  health: { plain: health },
  refresh: { plain: refresh },
  flush: { plain: flush },
  state: { plain: state },
  history: { plain: history },
  instances: { plain: instances },
  events: { plain: events },
  limits: { body: limits },
  breaker: { body: breaker },
  revoke: { plain: revoke },
  metrics: { plain: metrics },
  livez: { plain: livez },
  readyz: { plain: readyz },
  openapi: { plain: openapi },
  home: { plain: home },
  asset: { plain: asset },
} satisfies Record<RouteName, { body: BodyHandler } | { plain: Handler }>;

const BY_PATH = new Map<string, BoundRoute>(
  (Object.keys(HANDLERS) as RouteName[]).map((name) => [ROUTES[name].path, { route: ROUTES[name], ...HANDLERS[name] }]),
);

/** Routes with a `{parameter}`: there are few, and they are tried only if no exact path matches. */
const BY_PATTERN = [...BY_PATH.values()]
  .filter(({ route }) => route.path.includes("{"))
  .map((bound) => ({ bound, pattern: new RegExp(`^${bound.route.path.replaceAll(/\{\w+\}/g, "[^/]+")}$`) }));

/** Every path has one method. Another method is a mistake of the caller, not another route. */
export function findRoute(path: string): BoundRoute | undefined {
  return BY_PATH.get(path) ?? BY_PATTERN.find(({ pattern }) => pattern.test(path))?.bound;
}

export function takesMethod({ method }: Route, asked: string | undefined): boolean {
  return asked === method || (asked === "HEAD" && method === "GET");
}

export function allowedMethods({ method }: Route): string {
  return method === "GET" ? "GET, HEAD" : method;
}
