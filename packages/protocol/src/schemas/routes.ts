import type { TSchema } from "typebox";
import type { ProblemCode } from "../problems.ts";
import * as Answers from "./answer-schemas.ts";
import { HistorySchema, InstancesSchema, LiveStateSchema } from "./live-schemas.ts";
import * as Requests from "./request-schemas.ts";
import { ROUTE_PATHS, type RouteName, type RoutePath } from "./route-paths.ts";
import { StateSchema } from "./state-schema.ts";
import * as Type from "./type.ts";

/** One route of the HTTP contract. */
export interface Route extends RoutePath {
  readonly summary: string;
  readonly request?: TSchema;
  /** Numbers in the query, all optional. */
  readonly query?: { readonly [name: string]: string };
  /** Texts in the query, all optional. */
  readonly texts?: { readonly [name: string]: string };
  /** Headers of the request, all optional. */
  readonly headers?: { readonly [name: string]: string };
  /** Headers of the answer, beside those of every answer. */
  readonly answerHeaders?: { readonly [name: string]: string };
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

const ABOUT_ROUTES: { readonly [name in RouteName]: Omit<Route, keyof RoutePath> } = {
  acquire: {
    summary: "Ask for a slot, or continue to wait for it",
    request: Type.Union([Requests.FirstCallSchema, Requests.PollSchema]),
    headers: { Prefer: "`wait=N`: the same as `waitMs` of N seconds, for a first call without `waitMs` (RFC 7240)" },
    answer: json(Answers.AcquireAnswerSchema),
    answerHeaders: {
      "RateLimit-Policy": "the slots and budgets of the host (draft-ietf-httpapi-ratelimit-headers-11)",
      RateLimit: "what is left of them: `r` units; `t` seconds until a budget is full",
      "Preference-Applied": "the wait of `Prefer`, if it was used",
    },
    problems: ["BAD_TOKEN", "IMPOSSIBLE", "CAPACITY_MISMATCH", "DEMAND_MISMATCH"],
  },
  release: {
    summary: "Release a slot",
    request: Requests.ReleaseSchema,
    answer: json(Answers.ReleasedSchema),
  },
  renew: {
    summary: "Renew the lease of a slot",
    request: Requests.RenewSchema,
    answer: json(Answers.RenewedSchema),
    problems: ["SLOT_LOST", "UNAVAILABLE"],
  },
  cancel: {
    summary: "End a session; gives back its place, or its slot soon after the grant",
    request: Requests.CancelSchema,
    answer: json(Answers.CanceledSchema),
    problems: ["BAD_TOKEN"],
  },
  report: {
    summary: "Report an answer of the upstream to the circuit breaker",
    request: Requests.ReportSchema,
    answer: json(Answers.OkSchema),
    problems: ["UNAVAILABLE"],
  },
  health: {
    summary: "Name, version and configuration of the instance, in headers",
    answer: done,
  },
  refresh: {
    summary: "Read the configuration again; sessions survive",
    answer: done,
    problems: ["BAD_CONFIG", "CONTROLLER_UNREACHABLE"],
  },
  flush: {
    summary: "Clean up sessions and store now, and push the counts to the control plane",
    answer: done,
    problems: ["UNAVAILABLE", "CONTROLLER_UNREACHABLE"],
  },
  state: {
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
    summary: "The last 15 minutes, of all hosts or of one",
    texts: { host: "name or key of one host; absent: all hosts", ...BY_KEY },
    answer: json(HistorySchema),
    problems: ["BAD_FIELDS"],
  },
  instances: {
    summary: "The live instances of the fleet",
    answer: json(InstancesSchema),
    problems: ["UNAVAILABLE"],
  },
  events: {
    summary: "Changes, as server-sent events",
    answer: { status: 200, type: "text/event-stream", schema: LiveStateSchema },
    problems: ["NOT_READY"],
  },
  limits: {
    summary: "Set the live limits of a host, in the whole fleet",
    texts: NEW_HOST,
    request: Requests.LiveLimitsSchema,
    answer: done,
    problems: ["UNAVAILABLE"],
  },
  breaker: {
    summary: "Open or close the circuit breaker of a host",
    texts: NEW_HOST,
    request: Requests.BreakerCallSchema,
    answer: done,
    problems: ["UNAVAILABLE"],
  },
  pause: {
    summary: "Pause the grants of a host, or let it go on",
    texts: NEW_HOST,
    request: Requests.PauseCallSchema,
    answer: done,
    problems: ["UNAVAILABLE"],
  },
  revoke: {
    summary: "Revoke a slot; its holder is refused when it renews",
    answer: done,
    problems: ["BAD_FIELDS", "UNAVAILABLE"],
  },
  livez: {
    summary: "Whether the process runs",
    answer: json(Answers.AliveSchema),
  },
  readyz: {
    summary: "Whether slots can be granted, and if not, why",
    answer: json(Answers.ReadySchema),
    problems: ["NOT_READY"],
  },
  metrics: {
    summary: "Metrics, in the Prometheus text format",
    answer: { status: 200, type: "text/plain" },
  },
  openapi: {
    summary: "This document",
    answer: json(Type.Object({ openapi: Type.String() })),
  },
  home: {
    summary: "The dashboard",
    answer: { status: 200, type: "text/html" },
  },
  asset: {
    summary: "A file of the dashboard",
    answer: { status: 200 },
    problems: ["NOT_FOUND"],
  },
};

/** The HTTP contract. The server serves exactly these routes, and the OpenAPI document lists exactly these. */
export const ROUTES = Object.fromEntries(
  Object.entries(ABOUT_ROUTES).map(([name, about]) => [name, { ...ROUTE_PATHS[name as RouteName], ...about }]),
) as { readonly [name in RouteName]: Route };
