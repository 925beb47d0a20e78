import type { TSchema } from "typebox";
import { PROBLEMS, type ProblemCode } from "../problems.ts";
import * as Answers from "./answer-schemas.ts";
import { HistorySchema, InstancesSchema, LiveStateSchema } from "./live-schemas.ts";
import * as Requests from "./request-schemas.ts";
import type { Audience } from "./route-paths.ts";
import { ROUTES, type Route } from "./routes.ts";
import { StateSchema } from "./state-schema.ts";

const COMPONENTS = {
  FirstCall: Requests.FirstCallSchema,
  Poll: Requests.PollSchema,
  Release: Requests.ReleaseSchema,
  Renew: Requests.RenewSchema,
  Cancel: Requests.CancelSchema,
  Report: Requests.ReportSchema,
  Pending: Answers.PendingSchema,
  Granted: Answers.GrantedSchema,
  Throttled: Answers.ThrottledSchema,
  Timeout: Answers.TimeoutSchema,
  Overloaded: Answers.OverloadedSchema,
  Ok: Answers.OkSchema,
  Released: Answers.ReleasedSchema,
  Renewed: Answers.RenewedSchema,
  Canceled: Answers.CanceledSchema,
  Alive: Answers.AliveSchema,
  Ready: Answers.ReadySchema,
  State: StateSchema,
  LiveState: LiveStateSchema,
  History: HistorySchema,
  Instances: InstancesSchema,
  LiveLimits: Requests.LiveLimitsSchema,
  BreakerCall: Requests.BreakerCallSchema,
  PauseCall: Requests.PauseCallSchema,
  Problem: Answers.ProblemSchema,
} satisfies Record<string, TSchema>;

type Json = { [key: string]: unknown };

/** The OpenAPI 3.1 document, from the schemas the server checks with. `header` carries the shared key. */
export function openApiDocument({ version, header = "X-FQ-Auth" }: { version: string; header?: string }): Json {
  const paths: { [path: string]: Json } = {};
  for (const [name, route] of Object.entries<Route>(ROUTES)) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operation(name, route) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Slotkeeper",
      version,
      description: "Hands out slots of upstream hosts to client groups, in a fair order.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/" }],
    paths,
    components: {
      schemas: COMPONENTS,
      securitySchemes: {
        sharedKey: { type: "apiKey", in: "header", name: header },
        internal: { type: "http", scheme: "bearer" },
        metrics: { type: "http", scheme: "bearer" },
      },
    },
  };
}

/** If the configuration decides whether a key is needed, `{}` (no key) is one of the choices. */
const SECURITY: { readonly [audience in Audience]: readonly object[] } = {
  public: [],
  caller: [{ sharedKey: [] }, {}],
  internal: [{ internal: [] }],
  operator: [{ internal: [] }],
  scraper: [{ metrics: [] }, { internal: [] }],
};

function operation(name: string, route: Route): Json {
  const { request, summary, audience } = route;
  return {
    operationId: name,
    summary,
    security: SECURITY[audience],
    parameters: parameters(route),
    ...(request === undefined
      ? {}
      : { requestBody: { required: true, content: { "application/json": { schema: reference(request) } } } }),
    responses: responses(route),
  };
}

const PATH_PARAMETERS: { readonly [name: string]: Json } = {
  host: { description: "name of the host, or its key as `/state` shows it", schema: { type: "string", minLength: 1 } },
  file: {
    description: "file name, as the page of the dashboard links to it",
    schema: { type: "string", minLength: 1 },
  },
  id: {
    description: "`<host>.<fence>`: `slot` of `/state`",
    schema: { type: "string", pattern: "^.+\\.[1-9][0-9]{0,15}$" },
  },
};

function parameters({ path, query = {}, texts = {}, headers = {} }: Route): Json[] {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => ({
    name,
    in: "path",
    required: true,
    ...PATH_PARAMETERS[name],
  }));
  const optional = (place: string, names: Route["texts"] = {}, schema: Json = { type: "string" }) =>
    Object.entries(names).map(([name, description]) => ({ name, in: place, description, schema }));
  return [
    ...inPath,
    ...optional("query", query, { type: "integer", minimum: 0 }),
    ...optional("query", texts),
    ...optional("header", headers),
  ];
}

function responses({ answer, answerHeaders, problems = [], audience, request }: Route): Json {
  const content = answer.schema === undefined ? undefined : reference(answer.schema);
  const all: ProblemCode[] = [...problems, "BAD_REQUEST", "INTERNAL", "TOO_BUSY"];
  if (request !== undefined) all.push("BAD_JSON", "BAD_FIELDS", "BODY_TOO_LARGE");
  if (audience === "caller") all.push("UNAUTHORIZED", "FOREIGN_ORIGIN");
  if (audience === "internal" || audience === "operator" || audience === "scraper") all.push("NOT_FOUND");
  const byStatus: { [status: string]: Json } = {
    [answer.status]: {
      description: answer.status === 204 ? "Done" : "The result",
      ...(answerHeaders === undefined ? {} : { headers: headersOf(answerHeaders) }),
      ...(answer.type === undefined
        ? {}
        : { content: { [answer.type]: content === undefined ? {} : { schema: content } } }),
    },
  };
  for (const code of all) {
    const { status, title } = PROBLEMS[code];
    const known = byStatus[status]?.["description"];
    byStatus[status] = {
      description: known === undefined ? `${code}: ${title}` : `${String(known)}. ${code}: ${title}`,
      content: { "application/problem+json": { schema: reference(Answers.ProblemSchema) } },
    };
  }
  return byStatus;
}

function headersOf(names: { readonly [name: string]: string }): Json {
  const entries = Object.entries(names).map(([name, description]) => [
    name,
    { description, schema: { type: "string" } },
  ]);
  return Object.fromEntries(entries) as Json;
}

/** A reference to a schema that has a name; the members of a union are replaced one by one. */
function reference(schema: TSchema): unknown {
  for (const [name, component] of Object.entries(COMPONENTS)) {
    if (component === schema) return { $ref: `#/components/schemas/${name}` };
  }
  const { anyOf } = schema as { anyOf?: TSchema[] };
  return anyOf === undefined ? schema : { anyOf: anyOf.map(reference) };
}
