import { ROUTES, type Route, type RouteName } from "@slotkeeper/protocol/schemas";
import type { BodyHandler, Handler } from "./handler.ts";
import { acquire } from "./routes/acquire.ts";
import { flush, health, refresh } from "./routes/internal.ts";
import { home, livez, openapi, readyz } from "./routes/root.ts";
import { cancel, release, renew, report } from "./routes/slots.ts";
import { state } from "./routes/state.ts";

/** A route with what serves it; `body` where the route has a request. */
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
  livez: { plain: livez },
  readyz: { plain: readyz },
  openapi: { plain: openapi },
  home: { plain: home },
} satisfies Record<RouteName, { body: BodyHandler } | { plain: Handler }>;

const BY_PATH = new Map<string, BoundRoute>(
  (Object.keys(HANDLERS) as RouteName[]).map((name) => [ROUTES[name].path, { route: ROUTES[name], ...HANDLERS[name] }]),
);

/** Every path has one method; asking for another is the caller's mistake, not another route. */
export function findRoute(path: string): BoundRoute | undefined {
  return BY_PATH.get(path);
}

export function takesMethod({ method }: Route, asked: string | undefined): boolean {
  return asked === method || (asked === "HEAD" && method === "GET");
}

export function allowedMethods({ method }: Route): string {
  return method === "GET" ? "GET, HEAD" : method;
}
