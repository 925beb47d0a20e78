import type { TSchema } from "typebox";
import * as About from "../settings/about.ts";
import { FairQueueSectionSchema, RpcSchema } from "./fair-queue-schema.ts";
import { PATTERNS } from "./patterns.ts";
import * as Type from "./type.ts";

/** `config.json`. `writeOnly` marks secrets: they are never shown, logged or echoed. */

const text = (description: string, more: object = {}) => Type.String({ minLength: 1, description, ...more });
const secret = (description: string, more: object = {}) =>
  Type.String({ minLength: 1, writeOnly: true, description, ...more });
const secrets = (description: string, more: object = {}) =>
  Type.Array(Type.String({ minLength: 1, ...more }), { minItems: 1, writeOnly: true, description });
/** It comes or goes in a header. */
const inHeader = { pattern: PATTERNS.headerKey.source } as const;
const named = (description: string, more: object = {}) =>
  text(description, { pattern: PATTERNS.printable.source, ...more });
const most = (fallback: number, description: string) =>
  Type.Integer({ default: fallback, description: `${description}; ≤ 0: no limit` });

/** Beyond each of these limits the service refuses with 503 and `Retry-After`. */
const LimitsSchema = Type.section(
  {
    connections: most(20_000, "most open connections"),
    connectionsPerAddress: most(0, "most open connections of one client address"),
    heldPolls: most(20_000, "most calls that the service holds open at a time"),
    hosts: most(100_000, "most hosts in use at a time; a call for another host is refused"),
  },
  { description: "limits of one instance" },
);

const milliseconds = (fallback: number, description: string) =>
  Type.Integer({ minimum: 0, maximum: 3_600_000, default: fallback, description });

/** How long each step of a shutdown takes. */
const ShutdownSchema = Type.section(
  {
    graceMs: milliseconds(
      1_000,
      "how long the service still answers new requests after SIGTERM, while `/readyz` is 503; after SIGINT it is 0",
    ),
    deadlineMs: milliseconds(
      10_000,
      "how long after SIGTERM or SIGINT the service cuts off requests that are still open",
    ),
  },
  { description: "how the service stops" },
);

const aboutHost = {
  ...About.ABOUT_HOST_LIMITS,
  breaker: About.ABOUT_BREAKER_LIMITS,
  budgets: About.ABOUT_BUDGET_SETTINGS,
  keys: About.ABOUT_KEY_SETTINGS,
  classes: About.ABOUT_CLASS_SETTINGS,
};
const ABOUT_FAIR_QUEUE = {
  ...About.ABOUT_QUEUE_SETTINGS,
  ...aboutHost,
  cleanup: About.ABOUT_CLEANUP_SETTINGS,
  weightedScheduler: About.ABOUT_SCHEDULER_SETTINGS,
  hosts: aboutHost,
};

/** The schema of `config.json`. */
export const ConfigSchema = Type.section(
  {
    $schema: Type.String({ description: "schema for editors" }),
    listen: Type.String({
      pattern: PATTERNS.listen.source,
      default: "127.0.0.1:8080",
      description:
        "address to listen on: `host:port` or `:port`. Port 0 chooses a free port. With `auth.enabled` the default is `:8080`",
    }),
    logLevel: Type.Enum(["debug", "info", "warn", "error"], {
      default: "info",
      description: "lowest level that is logged",
    }),
    auth: Type.section({
      enabled: Type.Boolean({ default: false, description: "whether callers must send the shared key" }),
      header: text("header in which callers send the shared key", {
        pattern: PATTERNS.headerName.source,
        default: "X-FQ-Auth",
      }),
      token: secret("the shared key: printable ASCII without spaces; use at least 16 characters", inHeader),
      tokens: secrets("several shared keys, for rotation: each is accepted", inHeader),
    }),
    tokenKeys: secrets(
      "keys that sign `queryToken`s: the first signs, all verify; absent: the service makes one and keeps it in the store",
    ),
    cors: Type.section({
      origins: Type.Array(Type.String({ pattern: PATTERNS.origin.source }), {
        default: [],
        description: "origins of web pages that may call the service, like `https://app.example`; `*` allows all",
      }),
    }),
    backend: Type.section({
      mode: Type.Enum(["memory", "postgres", "postgrest"], {
        description:
          "which store to use; absent: `postgrest` if `backend.postgrest.baseUrl` is set, else `postgres` if `backend.postgres.dsn` is set, else `memory`",
      }),
      startWaitSeconds: Type.Number({
        minimum: 0,
        default: 20,
        description:
          "how long a start waits for a database that cannot be reached yet; 0: not at all. Flag: `--wait-for-store SECONDS`",
      }),
      memory: Type.section({
        journal: text("file that keeps the state of the memory store over restarts. Flag: `--data FILE`"),
      }),
      postgrest: Type.section({
        baseUrl: text("address of PostgREST; the service calls `POST {baseUrl}/rpc/{function}`", {
          pattern: PATTERNS.httpUrl.source,
        }),
        authHeader: secret("value of the `Authorization` header, sent unchanged", {
          pattern: PATTERNS.headerText.source,
        }),
        schema: text("one of the `db-schemas` of PostgREST, sent as `Content-Profile`; absent: the first of them", {
          pattern: PATTERNS.headerText.source,
        }),
      }),
      postgres: Type.section({
        dsn: secret("connection string of the database"),
        schema: text("database schema that contains the tables", { default: "public" }),
        poolSize: Type.Integer({ minimum: 1, default: 10, description: "most connections to the database" }),
        listenDsn: secret(
          "direct connection string for notifications, needed if `dsn` is a transaction pooler; absent: `dsn`",
        ),
      }),
    }),
    internalApiToken: secret(
      "bearer token for the internal routes and the routes for operators: printable ASCII without spaces; use at least 16 characters",
      inHeader,
    ),
    metrics: Type.section({
      token: secret(
        "bearer token for `/metrics` alone, for a scraper that should not have the internal one; absent: `internalApiToken`",
        inHeader,
      ),
    }),
    controller: Type.section({
      url: text("address of the control plane", { pattern: PATTERNS.httpUrl.source }),
      apiToken: secret("bearer token that the service sends to the control plane", inHeader),
      env: named("name of the environment, sent as `X-Env`"),
      role: named("role of this instance, sent as `X-Role`", { default: "slot-handler" }),
      instanceId: named("id of this instance, sent as `X-Instance-Id`; absent: a new one at each start"),
      appName: named("name of the application, sent as `X-App-Name`", { default: "slotkeeper" }),
      appVersion: named("version of the application, sent as `X-App-Version`; absent: the version of Slotkeeper"),
      apiPrefix: Type.String({ default: "/api/v0", description: "prefix of the paths of the control plane" }),
    }),
    limits: LimitsSchema,
    shutdown: ShutdownSchema,
    fairQueue: described(FairQueueSectionSchema, ABOUT_FAIR_QUEUE),
    rpc: RpcSchema,
  },
  { title: "Slotkeeper configuration" },
);

/** Texts by key, as deep as the schema that they describe. The values of an object with any keys have the same texts. */
interface Texts {
  readonly [key: string]: string | Texts;
}

type Json = { readonly [key: string]: unknown };

/** The schema with a description of each key. */
function described<S extends TSchema>(schema: S, texts: string | Texts = {}): S {
  if (typeof texts === "string") return { ...schema, description: texts };
  const { properties, patternProperties } = schema as unknown as Json;
  return {
    ...schema,
    ...(properties === undefined ? {} : { properties: each(properties, (key) => texts[key]) }),
    ...(patternProperties === undefined ? {} : { patternProperties: each(patternProperties, () => texts) }),
  };
}

function each(schemas: unknown, textsOf: (key: string) => string | Texts | undefined): Json {
  return Object.fromEntries(
    Object.entries(schemas as Json).map(([key, schema]) => [key, described(schema as TSchema, textsOf(key))]),
  );
}
