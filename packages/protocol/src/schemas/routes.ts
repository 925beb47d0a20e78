import { type TSchema, Type } from "typebox";
import { API_PREFIX } from "../limits.ts";
import type { ProblemCode } from "../problems.ts";
import * as Answers from "./answer-schemas.ts";
import { LiveLimitsSchema } from "./live-limits.ts";
import { HistorySchema, InstancesSchema, LiveStateSchema } from "./live-schemas.ts";
import * as Requests from "./request-schemas.ts";
import { StateSchema } from "./state-schema.ts";

/**
 * Who may call a route.
 *   public    all callers
 *   caller    holders of the shared key, where one is set
 *   internal  holders of the internal bearer; for all others the route does not exist
 *   operator  as internal; with no bearer set, callers on this machine
 *   scraper   as internal; with no bearer set, all callers
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
  /** Beyond those every route of its kind may give. */
  readonly problems?: readonly ProblemCode[];
}

const json = (schema: TSchema) => ({ status: 200, type: "application/json", schema }) as const;
const done = { status: 204 } as const;
const BY_KEY = { by: "`key`: the host is named by its key, whatever it looks like" } as const;
const NEW_HOST = { ...BY_KEY, new: "`true`: the host has not been used yet; else an unknown one is 404" } as const;
const caller = (path: string, more: Pick<Route, "summary" | "request" | "answer" | "problems">): Route => ({
  method: "POST",
  path: `${API_PREFIX}/fairqueue/${path}`,
  audience: "caller",
  ...more,
});

/** The HTTP contract: the server serves exactly these, and the OpenAPI document lists exactly these. */
export const ROUTES = {
  acquire: caller("acquire", {
    summary: "Ask for a slot, or wait on for one",
    request: Type.Union([Requests.FirstCallSchema, Requests.PollSchema]),
    answer: json(Answers.AcquireAnswerSchema),
    problems: ["BAD_TOKEN", "CAPACITY_MISMATCH"],
  }),
  release: caller("release", {
    summary: "Give a slot back",
    request: Requests.ReleaseSchema,
    answer: json(Answers.OkSchema),
  }),
  renew: caller("renew", {
    summary: "Keep a slot for another lease",
    request: Requests.RenewSchema,
    answer: json(Answers.RenewedSchema),
    problems: ["SLOT_LOST", "UNAVAILABLE"],
  }),
  cancel: caller("cancel", {
    summary: "Give up waiting; gives back the place and the slot",
    request: Requests.CancelSchema,
    answer: json(Answers.CanceledSchema),
    problems: ["BAD_TOKEN"],
  }),
  report: caller("report", {
    summary: "Report an upstream's answer to the breaker",
    request: Requests.ReportSchema,
    answer: json(Answers.OkSchema),
    problems: ["UNAVAILABLE"],
  }),
  health: {
    method: "GET",
    path: `${API_PREFIX}/health`,
    audience: "internal",
    summary: "Who this is, in headers",
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
    summary: "Sweep sessions and store now, and push the metrics",
    answer: done,
    problems: ["UNAVAILABLE", "CONTROLLER_UNREACHABLE"],
  },
  state: {
    method: "GET",
    path: `${API_PREFIX}/state`,
    audience: "operator",
    summary: "Hosts, buckets, sessions and slots, by pages of hosts",
    query: {
      offset: "hosts to skip",
      limit: "hosts to show: 1 to 1000, else 100",
      sessions: "sessions to show of each host: 0 to 1000, else 200",
      from: "sessions of each host to skip",
    },
    texts: { host: "only this one: its name, or its key", ...BY_KEY },
    answer: json(StateSchema),
    problems: ["BAD_FIELDS", "UNAVAILABLE"],
  },
  history: {
    method: "GET",
    path: `${API_PREFIX}/history`,
    audience: "operator",
    summary: "The last 15 minutes, of all hosts or of one",
    texts: { host: "its name, or its key; absent: all hosts", ...BY_KEY },
    answer: json(HistorySchema),
    problems: ["BAD_FIELDS"],
  },
  instances: {
    method: "GET",
    path: `${API_PREFIX}/instances`,
    audience: "operator",
    summary: "Who is alive",
    answer: json(InstancesSchema),
    problems: ["UNAVAILABLE"],
  },
  events: {
    method: "GET",
    path: `${API_PREFIX}/events`,
    audience: "operator",
    summary: "What changes, as server-sent events",
    answer: { status: 200, type: "text/event-stream", schema: LiveStateSchema },
    problems: ["NOT_READY"],
  },
  limits: {
    method: "POST",
    path: `${API_PREFIX}/hosts/{host}`,
    audience: "operator",
    summary: "Set a host's limits, live and in the whole fleet",
    texts: NEW_HOST,
    request: LiveLimitsSchema,
    answer: done,
    problems: ["UNAVAILABLE"],
  },
  breaker: {
    method: "POST",
    path: `${API_PREFIX}/hosts/{host}/breaker`,
    audience: "operator",
    summary: "Open or close a host's breaker",
    texts: NEW_HOST,
    request: Requests.BreakerCallSchema,
    answer: done,
    problems: ["UNAVAILABLE"],
  },
  revoke: {
    method: "DELETE",
    path: `${API_PREFIX}/slots/{id}`,
    audience: "operator",
    summary: "Take a slot away; its holder learns when it renews",
    answer: done,
    problems: ["BAD_FIELDS", "UNAVAILABLE"],
  },
  livez: {
    method: "GET",
    path: "/livez",
    audience: "public",
    summary: "The process runs",
    answer: json(Answers.AliveSchema),
  },
  readyz: {
    method: "GET",
    path: "/readyz",
    audience: "public",
    summary: "Slots can be granted, and the service is not stopping; otherwise why",
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
