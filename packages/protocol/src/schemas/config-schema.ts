import { Type } from "typebox";
import { FairQueueSchema } from "./fair-queue-schema.ts";
import { PATTERNS } from "./patterns.ts";

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
  Type.Integer({ default: fallback, description: `${description}; ≤ 0 off` });

/** Names of the original's SQL functions: accepted, so that its configuration is, and not used any more. */
const rpcSchema = Type.Object(
  {
    throttleCheckFunc: Type.Optional(Type.String()),
    registerWaiterFunc: Type.Optional(Type.String()),
    releaseWaiterFunc: Type.Optional(Type.String()),
    tryAcquireFunc: Type.Optional(Type.String()),
    releaseFunc: Type.Optional(Type.String()),
  },
  { additionalProperties: false, description: "not used any more: the store has functions of its own" },
);

/** What the service refuses beyond, each with 503 and `Retry-After`. */
const LimitsSchema = Type.Object(
  {
    connections: Type.Optional(most(20_000, "open connections")),
    connectionsPerAddress: Type.Optional(most(0, "open connections of one address")),
    heldPolls: Type.Optional(most(20_000, "calls held open")),
    hosts: Type.Optional(most(100_000, "hosts known at a time; a new one is refused beyond")),
  },
  { additionalProperties: false, description: "what one service carries" },
);

const milliseconds = (fallback: number, description: string) =>
  Type.Integer({ minimum: 0, maximum: 3_600_000, default: fallback, description });

/** What SIGTERM does, in time. */
const ShutdownSchema = Type.Object(
  {
    graceMs: Type.Optional(
      milliseconds(1_000, "after SIGTERM: how long new requests are still answered while `/readyz` is 503; SIGINT: 0"),
    ),
    deadlineMs: Type.Optional(
      milliseconds(10_000, "after SIGTERM or SIGINT: when requests that are still open are cut off"),
    ),
  },
  { additionalProperties: false, description: "how the service stops" },
);

const closed = { additionalProperties: false } as const;

/** The schema of `config.json`. */
export const ConfigSchema = Type.Object(
  {
    $schema: Type.Optional(Type.String({ description: "for editors" })),
    listen: Type.Optional(
      Type.String({
        pattern: PATTERNS.listen.source,
        default: "127.0.0.1:8080",
        description: "`host:port` or `:port`; with `auth.enabled` the default is `:8080`; port 0 takes a free one",
      }),
    ),
    logLevel: Type.Optional(
      Type.Enum(["debug", "info", "warn", "error"], { default: "info", description: "the least that is logged" }),
    ),
    auth: Type.Optional(
      Type.Object(
        {
          enabled: Type.Optional(Type.Boolean({ default: false, description: "whether callers need the shared key" })),
          header: Type.Optional(
            text("the header that carries it", { pattern: PATTERNS.headerName.source, default: "X-FQ-Auth" }),
          ),
          token: Type.Optional(
            secret("the shared key: printable ASCII without spaces, 16 characters or more", inHeader),
          ),
          tokens: Type.Optional(secrets("several, for rotation: each is accepted", inHeader)),
        },
        closed,
      ),
    ),
    tokenKeys: Type.Optional(
      secrets("keys that sign `queryToken`s: the first signs, all verify; absent: made once and kept with the store"),
    ),
    cors: Type.Optional(
      Type.Object(
        {
          origins: Type.Optional(
            Type.Array(Type.String({ pattern: PATTERNS.origin.source }), {
              default: [],
              description: "origins of browser clients, like `https://app.example`; `*` for any",
            }),
          ),
        },
        closed,
      ),
    ),
    backend: Type.Optional(
      Type.Object(
        {
          mode: Type.Optional(
            Type.Enum(["memory", "postgres", "postgrest"], {
              description: "absent: `postgrest` if its `baseUrl` is set, `postgres` if a `dsn` is, else `memory`",
            }),
          ),
          startWaitSeconds: Type.Optional(
            Type.Number({
              minimum: 0,
              default: 20,
              description:
                "how long a start waits for a database that is not there yet; 0: not at all; `serve --wait-for-store SECONDS`",
            }),
          ),
          memory: Type.Optional(
            Type.Object({ journal: Type.Optional(text("a file that survives restarts; `serve --data FILE`")) }, closed),
          ),
          postgrest: Type.Optional(
            Type.Object(
              {
                baseUrl: Type.Optional(
                  text("RPC is `POST {baseUrl}/rpc/{function}`", { pattern: PATTERNS.httpUrl.source }),
                ),
                authHeader: Type.Optional(
                  secret("goes out verbatim as `Authorization`", { pattern: PATTERNS.headerText.source }),
                ),
                schema: Type.Optional(
                  text("one of PostgREST's `db-schemas`, sent as `Content-Profile`; absent: its first", {
                    pattern: PATTERNS.headerText.source,
                  }),
                ),
              },
              closed,
            ),
          ),
          postgres: Type.Optional(
            Type.Object(
              {
                dsn: Type.Optional(secret("address of the database")),
                schema: Type.Optional(text("where the tables are", { default: "public" })),
                poolSize: Type.Optional(Type.Integer({ minimum: 1, default: 10, description: "connections" })),
                listenDsn: Type.Optional(secret("a direct address when `dsn` is a transaction pooler; absent: `dsn`")),
              },
              closed,
            ),
          ),
        },
        closed,
      ),
    ),
    internalApiToken: Type.Optional(
      secret("bearer of the internal API: printable ASCII without spaces, 16 characters or more", inHeader),
    ),
    controller: Type.Optional(
      Type.Object(
        {
          url: Type.Optional(text("address of the control plane", { pattern: PATTERNS.httpUrl.source })),
          apiToken: Type.Optional(secret("bearer for it", inHeader)),
          env: Type.Optional(named("environment, sent in `X-Env`")),
          role: Type.Optional(named("sent in `X-Role`", { default: "slot-handler" })),
          instanceId: Type.Optional(named("sent in `X-Instance-Id`; absent: made at start")),
          appName: Type.Optional(named("sent in `X-App-Name`", { default: "slotkeeper" })),
          appVersion: Type.Optional(named("sent in `X-App-Version`; absent: this version")),
          apiPrefix: Type.Optional(Type.String({ default: "/api/v0", description: "of the control plane" })),
        },
        closed,
      ),
    ),
    limits: Type.Optional(LimitsSchema),
    shutdown: Type.Optional(ShutdownSchema),
    fairQueue: Type.Optional(
      Type.Object({ ...FairQueueSchema.properties, rpc: Type.Optional(rpcSchema) }, { additionalProperties: false }),
    ),
    rpc: Type.Optional(rpcSchema),
  },
  { additionalProperties: false, title: "Slotkeeper configuration" },
);
