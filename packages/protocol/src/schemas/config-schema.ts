import { Type } from "typebox";
import { FairQueueSchema } from "./fair-queue-schema.ts";
import { PATTERNS } from "./patterns.ts";

/** `config.json`. `writeOnly` marks secrets: they are never shown, logged or echoed. */

const text = (description: string, more: object = {}) => Type.String({ minLength: 1, description, ...more });
const secret = (description: string) => Type.String({ minLength: 1, writeOnly: true, description });
const secrets = (description: string) =>
  Type.Array(Type.String({ minLength: 1 }), { minItems: 1, writeOnly: true, description });

const functionName = (fallback: string | undefined) =>
  Type.String({
    pattern: PATTERNS.sqlName.source,
    ...(fallback === undefined ? {} : { default: fallback }),
    description: "an SQL function's name",
  });

const RPC_NAMES = {
  throttleCheckFunc: "download_check_throttle_protection",
  registerWaiterFunc: "download_register_fq_waiter",
  releaseWaiterFunc: "download_release_fq_waiter",
  tryAcquireFunc: "download_try_acquire_slot",
  releaseFunc: "download_release_slot",
} as const;

/** The names may stand in two places; only one of them has the defaults, so that what is given is never hidden. */
const rpcSchema = (names: { readonly [K in keyof typeof RPC_NAMES]?: string }) =>
  Type.Object(
    {
      throttleCheckFunc: Type.Optional(functionName(names.throttleCheckFunc)),
      registerWaiterFunc: Type.Optional(functionName(names.registerWaiterFunc)),
      releaseWaiterFunc: Type.Optional(functionName(names.releaseWaiterFunc)),
      tryAcquireFunc: Type.Optional(functionName(names.tryAcquireFunc)),
      releaseFunc: Type.Optional(functionName(names.releaseFunc)),
    },
    { additionalProperties: false, description: "names of the SQL functions, here or under `fairQueue`" },
  );

const closed = { additionalProperties: false } as const;

export const ConfigSchema = Type.Object(
  {
    $schema: Type.Optional(Type.String({ description: "for editors" })),
    listen: Type.Optional(
      Type.String({
        pattern: PATTERNS.listen.source,
        default: ":8080",
        description: "`host:port` or `:port`; with no file `127.0.0.1:8080`; port 0 takes a free one",
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
          token: Type.Optional(secret("the shared key")),
          tokens: Type.Optional(secrets("several, for rotation: each is accepted")),
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
            Type.Array(Type.String({ minLength: 1 }), {
              default: [],
              description: "origins of browser clients; `*` for any",
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
          memory: Type.Optional(
            Type.Object({ journal: Type.Optional(text("a file that survives restarts; `serve --data FILE`")) }, closed),
          ),
          postgrest: Type.Optional(
            Type.Object(
              {
                baseUrl: Type.Optional(
                  text("RPC is `POST {baseUrl}/rpc/{function}`", { pattern: PATTERNS.httpUrl.source }),
                ),
                authHeader: Type.Optional(secret("goes out verbatim as `Authorization`")),
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
    internalApiToken: Type.Optional(secret("bearer of the internal API")),
    controller: Type.Optional(
      Type.Object(
        {
          url: Type.Optional(text("address of the control plane", { pattern: PATTERNS.httpUrl.source })),
          apiToken: Type.Optional(secret("bearer for it")),
          env: Type.Optional(text("environment, told in `X-Env`")),
          role: Type.Optional(text("told in `X-Role`", { default: "slot-handler" })),
          instanceId: Type.Optional(text("told in `X-Instance-Id`; absent: made at start")),
          appName: Type.Optional(text("told in `X-App-Name`", { default: "slotkeeper" })),
          appVersion: Type.Optional(text("told in `X-App-Version`; absent: this version")),
          apiPrefix: Type.Optional(Type.String({ default: "/api/v0", description: "of the control plane" })),
        },
        closed,
      ),
    ),
    fairQueue: Type.Optional(
      Type.Object(
        { ...FairQueueSchema.properties, rpc: Type.Optional(rpcSchema({})) },
        { additionalProperties: false },
      ),
    ),
    rpc: Type.Optional(rpcSchema(RPC_NAMES)),
  },
  { additionalProperties: false, title: "Slotkeeper configuration" },
);
