import type { TSchema } from "typebox";
import * as Type from "typebox";
import { API_PREFIX } from "../limits.ts";
import type { ProblemCode } from "../problems.ts";
import * as Answers from "./answer-schemas.ts";
import { LiveLimitsSchema } from "./live-limits.ts";
import { HistorySchema, InstancesSchema, LiveStateSchema } from "./live-schemas.ts";
import * as Requests from "./request-schemas.ts";
import { StateSchema } from "./state-schema.ts";

/**
 * Which callers may use a route.
 *   public    all callers
 *   caller    holders of the shared key, where one is set
 *   internal  holders of the internal bearer; for all others the route does not exist
 *   operator  as internal; with no bearer set, callers on this machine
 *   scraper   holders of the bearer of the metrics or of the internal one; with neither set, callers on this machine
 */
export type Audience = "public" | "caller" | "internal" | "operator" | "scraper";

/** One route of the HTTP contract. */
export interface Route {
  readonly method: "GET" | "POST" | "DELETE";
  /** `{name}` stands for one segment. */
  readonly path: string;
  readonly audience: Audience;
  readonly summary: string;
  readonly request?: TSchema;
  /** Numbers in the query, all optional. */
  readonly query?: { readonly [name: string]: string };
  /** Texts in the query, all optional. */
  readonly texts?: { readonly [name: string]: string };
  readonly answer: { readonly status: 200 | 204; readonly type?: string; readonly schema?: TSchema };
  /** Problems of this route, in addition to those that every route of its kind has. */
  readonly problems?: readonly ProblemCode[];
}

const json = (schema: TSchema) => ({ status: 200, type: "application/json", schema }) as const;
const done = { status: 204 } as const;
const BY_KEY = { by: "`key`: the path names the host by its key" } as const;
const NEW_HOST = {
  ...BY_KEY,
  new: "`true`: accept a host that has not been used yet; otherwise an unknown host is 404",
} as const;
const caller = (path: string, more: Pick<Route, "summary" | "request" | "answer" | "problems">): Route => ({
  method: "POST",
  path: `${API_PREFIX}/fairqueue/${path}`,
  audience: "caller",
  ...more,
});

/** The HTTP contract. The server serves exactly these routes, and the OpenAPI document lists exactly these. */
export const ROUTES = {
  acquire: caller("acquire", {
    summary: "Ask for a slot, or continue to wait for it",
    request: Type.Union([Requests.FirstCallSchema, Requests.PollSchema]),
    answer: json(Answers.AcquireAnswerSchema),
    problems: ["BAD_TOKEN", "CAPACITY_MISMATCH"],
  }),
  release: caller("release", {
    summary: "Release a slot",
    request: Requests.ReleaseSchema,
    answer: json(Answers.ReleasedSchema),
  }),
  renew: caller("renew", {
    summary: "Renew the lease of a slot",
    request: Requests.RenewSchema,
    answer: json(Answers.RenewedSchema),
    problems: ["SLOT_LOST", "UNAVAILABLE"],
  }),
  cancel: caller("cancel", {
    summary: "End a session; gives back its place, or its slot soon after the grant",
    request: Requests.CancelSchema,
    answer: json(Answers.CanceledSchema),
    problems: ["BAD_TOKEN"],
  }),
  report: caller("report", {
    summary: "Report an answer of the upstream to the circuit breaker",
    request: Requests.ReportSchema,
    answer: json(Answers.OkSchema),
    problems: ["UNAVAILABLE"],
  }),
  health: {
    method: "GET",
    path: `${API_PREFIX}/health`,
    audience: "internal",
    summary: "Name, version and configuration of the instance, in headers",
    answer: done,
  },
  refresh: {
    method: "POST",
    path: `${API_PREFIX}/refresh`,
    audience: "internal",
    summary: "Read the configuration again; sessions survive",
    answer: done,
    problems: ["BAD_CONFIG", "CONTROLLER_UNREACHABLE"],
  },
  flush: {
    method: "POST",
    path: `${API_PREFIX}/flush`,
    audience: "internal",
    summary: "Clean up sessions and store now, and push the counts to the control plane",
    answer: done,
    problems: ["UNAVAILABLE", "CONTROLLER_UNREACHABLE"],
  },
  state: {
    method: "GET",
    path: `${API_PREFIX}/state`,
    audience: "operator",
    summary: "Hosts with their buckets, sessions and slots, in pages",
    query: {
      offset: "number of hosts to skip",
      limit: "number of hosts: 1 to 1000, default 100",
      sessions: "number of sessions of each host: 0 to 1000, default 200",
      from: "number of sessions of each host to skip",
    },
    texts: { host: "only this host, by its name or key", ...BY_KEY },
    answer: json(StateSchema),
    problems: ["BAD_FIELDS", "UNAVAILABLE"],
  },
  history: {
    method: "GET",
    path: `${API_PREFIX}/history`,
    audience: "operator",
    summary: "The last 15 minutes, of all hosts or of one",
    texts: { host: "name or key of one host; absent: all hosts", ...BY_KEY },
    answer: json(HistorySchema),
    problems: ["BAD_FIELDS"],
  },
  instances: {
    method: "GET",
    path: `${API_PREFIX}/instances`,
    audience: "operator",
    summary: "The live instances of the fleet",
    answer: json(InstancesSchema),
    problems: ["UNAVAILABLE"],
  },
  events: {
    method: "GET",
    path: `${API_PREFIX}/events`,
    audience: "operator",
    summary: "Changes, as server-sent events",
    answer: { status: 200, type: "text/event-stream", schema: LiveStateSchema },
    problems: ["NOT_READY"],
  },
  limits: {
    method: "POST",
    path: `${API_PREFIX}/hosts/{host}`,
    audience: "operator",
    summary: "Set the live limits of a host, in the whole fleet",
    texts: NEW_HOST,
    request: LiveLimitsSchema,
    answer: done,
    problems: ["UNAVAILABLE"],
  },
  breaker: {
    method: "POST",
    path: `${API_PREFIX}/hosts/{host}/breaker`,
    audience: "operator",
    summary: "Open or close the circuit breaker of a host",
    texts: NEW_HOST,
    request: Requests.BreakerCallSchema,
    answer: done,
    problems: ["UNAVAILABLE"],
  },
  revoke: {
    method: "DELETE",
    path: `${API_PREFIX}/slots/{id}`,
    audience: "operator",
    summary: "Revoke a slot; its holder is refused when it renews",
    answer: done,
    problems: ["BAD_FIELDS", "UNAVAILABLE"],
  },
  livez: {
    method: "GET",
    path: "/livez",
    audience: "public",
    summary: "Whether the process runs",
    answer: json(Answers.AliveSchema),
  },
  readyz: {
    method: "GET",
    path: "/readyz",
    audience: "public",
    summary: "Whether slots can be granted, and if not, why",
    answer: json(Answers.ReadySchema),
    problems: ["NOT_READY"],
  },
  metrics: {
    method: "GET",
    path: "/metrics",
    audience: "scraper",
    summary: "Metrics, in the Prometheus text format",
    answer: { status: 200, type: "text/plain" },
  },
  openapi: {
    method: "GET",
    path: "/openapi.json",
    audience: "public",
    summary: "This document",
    answer: json(Type.Object({ openapi: Type.String() })),
  },
  home: {
    method: "GET",
    path: "/",
    audience: "public",
    summary: "The dashboard",
    answer: { status: 200, type: "text/html" },
  },
  asset: {
    method: "GET",
    path: "/assets/{file}",
    audience: "public",
    summary: "A file of the dashboard",
    answer: { status: 200 },
    problems: ["NOT_FOUND"],
  },
} as const satisfies Record<string, Route>;

/** The name of a route. */
export type RouteName = keyof typeof ROUTES;
