import { API_PREFIX } from "../limits.ts";

/**
 * Which callers may use a route.
 *   public    all callers
 *   caller    holders of the shared key, where one is set
 *   internal  holders of the internal bearer; for all others the route does not exist
 *   operator  as internal; with no bearer set, callers on this machine
 *   scraper   holders of the bearer of the metrics or of the internal one; with neither set, callers on this machine
 */
export type Audience = "public" | "caller" | "internal" | "operator" | "scraper";

/** Where a route is, and who may use it. This is all that serving it needs. */
export interface RoutePath {
  readonly method: "GET" | "POST" | "DELETE";
  /** `{name}` stands for one segment. */
  readonly path: string;
  readonly audience: Audience;
  /** Whether its request has a body. */
  readonly hasBody?: true;
}

const caller = (path: string) =>
  ({ method: "POST", path: `${API_PREFIX}/fairqueue/${path}`, audience: "caller", hasBody: true }) as const;

/** The paths of the HTTP contract. `ROUTES` adds their descriptions and schemas. */
export const ROUTE_PATHS = {
  acquire: caller("acquire"),
  release: caller("release"),
  renew: caller("renew"),
  cancel: caller("cancel"),
  report: caller("report"),
  health: { method: "GET", path: `${API_PREFIX}/health`, audience: "internal" },
  refresh: { method: "POST", path: `${API_PREFIX}/refresh`, audience: "internal" },
  flush: { method: "POST", path: `${API_PREFIX}/flush`, audience: "internal" },
  state: { method: "GET", path: `${API_PREFIX}/state`, audience: "operator" },
  history: { method: "GET", path: `${API_PREFIX}/history`, audience: "operator" },
  instances: { method: "GET", path: `${API_PREFIX}/instances`, audience: "operator" },
  events: { method: "GET", path: `${API_PREFIX}/events`, audience: "operator" },
  limits: { method: "POST", path: `${API_PREFIX}/hosts/{host}`, audience: "operator", hasBody: true },
  breaker: { method: "POST", path: `${API_PREFIX}/hosts/{host}/breaker`, audience: "operator", hasBody: true },
  pause: { method: "POST", path: `${API_PREFIX}/hosts/{host}/pause`, audience: "operator", hasBody: true },
  revoke: { method: "DELETE", path: `${API_PREFIX}/slots/{id}`, audience: "operator" },
  livez: { method: "GET", path: "/livez", audience: "public" },
  readyz: { method: "GET", path: "/readyz", audience: "public" },
  metrics: { method: "GET", path: "/metrics", audience: "scraper" },
  openapi: { method: "GET", path: "/openapi.json", audience: "public" },
  home: { method: "GET", path: "/", audience: "public" },
  asset: { method: "GET", path: "/assets/{file}", audience: "public" },
} as const satisfies Record<string, RoutePath>;

/** The name of a route. */
export type RouteName = keyof typeof ROUTE_PATHS;
