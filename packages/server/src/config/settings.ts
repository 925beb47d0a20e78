import type { CleanupConfig, FairQueueConfig, ServiceConfig } from "@slotkeeper/protocol";

/** The configuration as the service uses it: every default filled in, choices made. */
export interface Settings {
  readonly listen: ListenAddress;
  readonly logLevel: LogLevel;
  /** Undefined: all callers are accepted. */
  readonly auth: { readonly header: string; readonly keys: readonly string[] } | undefined;
  readonly authHeader: string;
  /** Undefined: made once and kept with the store. */
  readonly tokenKeys: readonly string[] | undefined;
  readonly corsOrigins: readonly string[];
  readonly backend: Backend;
  readonly internalApiToken: string | undefined;
  readonly limits: ServiceLimits;
  readonly shutdown: ShutdownTimes;
  readonly identity: Identity;
  /** Undefined: there is no control plane. */
  readonly controller: ControllerAddress | undefined;
  readonly fairQueue: FairQueueConfig;
  /** Undefined: never. */
  readonly cleanupEveryMs: number | undefined;
}

/** What one service carries; infinite: no limit. */
export interface ServiceLimits {
  readonly connections: number;
  readonly connectionsPerAddress: number;
  readonly heldPolls: number;
  readonly hosts: number;
}

/** What a stop takes. */
export interface ShutdownTimes {
  /** How long new requests are still answered, so that a balancer sees `/readyz` turn. */
  readonly graceMs: number;
  /** When whatever is still open is cut off. */
  readonly deadlineMs: number;
}

export type LogLevel = NonNullable<ServiceConfig["logLevel"]>;

export interface ListenAddress {
  /** Undefined: every address of the machine. */
  readonly host: string | undefined;
  readonly port: number;
}

export type Backend =
  | { readonly mode: "memory"; readonly journal: string | undefined }
  | {
      readonly mode: "postgres";
      readonly dsn: string;
      readonly schema: string;
      readonly poolSize: number;
      /** A direct address for notifications, where `dsn` is a transaction pooler. */
      readonly listenDsn: string | undefined;
      /** How long a start waits for a database that is not there yet. */
      readonly startWaitMs: number;
    }
  | {
      readonly mode: "postgrest";
      readonly baseUrl: string;
      readonly authHeader: string | undefined;
      /** Undefined: the first one that PostgREST exposes. */
      readonly schema: string | undefined;
      readonly startWaitMs: number;
    };

export interface ControllerAddress {
  /** With its prefix, without a slash at the end. */
  readonly base: string;
  readonly apiToken: string;
}

export interface Identity {
  readonly appName: string;
  readonly appVersion: string | undefined;
  readonly env: string | undefined;
  readonly role: string;
  readonly instanceId: string | undefined;
}

type Section<K extends keyof ServiceConfig> = Required<NonNullable<ServiceConfig[K]>>;

/** Over the defaults of the schema, which is the only place that has them: these keys are always there. */
export type FilledConfig = ServiceConfig &
  Required<Pick<ServiceConfig, "listen" | "logLevel" | "backend">> & {
    readonly auth: Pick<Section<"auth">, "header">;
    readonly cors: Section<"cors">;
    readonly limits: Section<"limits">;
    readonly shutdown: Section<"shutdown">;
    readonly controller: Pick<Section<"controller">, "appName" | "role" | "apiPrefix">;
    readonly backend: Pick<Section<"backend">, "startWaitSeconds"> & {
      readonly postgres: Pick<Required<Section<"backend">["postgres"]>, "schema" | "poolSize">;
    };
    readonly fairQueue: { readonly cleanup: Required<CleanupConfig> };
  };

/** From a configuration that has been checked. */
export function settingsOf(config: FilledConfig): Settings {
  const { auth, fairQueue, controller } = config;
  const { rpc: _names, ...engine } = fairQueue;
  const { enabled: isSwept, intervalSeconds } = engine.cleanup;
  const { header } = auth;
  return {
    listen: parseListen(config.listen),
    logLevel: config.logLevel,
    auth: auth.enabled === true ? { header, keys: sharedKeys(config) } : undefined,
    authHeader: header,
    tokenKeys: config.tokenKeys,
    corsOrigins: config.cors.origins,
    backend: backendOf(config),
    internalApiToken: config.internalApiToken,
    limits: limitsOf(config),
    shutdown: config.shutdown,
    identity: {
      appName: controller.appName,
      appVersion: controller.appVersion,
      env: controller.env,
      role: controller.role,
      instanceId: controller.instanceId,
    },
    controller: controllerOf(config),
    fairQueue: engine,
    cleanupEveryMs: isSwept ? intervalSeconds * 1000 : undefined,
  };
}

function limitsOf({ limits }: FilledConfig): ServiceLimits {
  return {
    connections: orUnlimited(limits.connections),
    connectionsPerAddress: orUnlimited(limits.connectionsPerAddress),
    heldPolls: orUnlimited(limits.heldPolls),
    hosts: orUnlimited(limits.hosts),
  };
}

function orUnlimited(limit: number): number {
  return limit > 0 ? limit : Number.POSITIVE_INFINITY;
}

function controllerOf({ controller }: FilledConfig): ControllerAddress | undefined {
  if (controller.url === undefined || controller.apiToken === undefined) return undefined;
  const prefix = controller.apiPrefix.replaceAll(/^\/+|\/+$/g, "");
  const base = controller.url.replaceAll(/\/+$/g, "");
  return { base: prefix === "" ? base : `${base}/${prefix}`, apiToken: controller.apiToken };
}

export function sharedKeys({ auth }: ServiceConfig): string[] {
  return [...(auth?.token === undefined ? [] : [auth.token]), ...(auth?.tokens ?? [])];
}

/** `backend.mode`; if absent, `postgrest` or `postgres` if the address of one is set, else `memory`. */
export function backendMode({ backend }: ServiceConfig): Backend["mode"] {
  if (backend?.mode !== undefined) return backend.mode;
  if (backend?.postgrest?.baseUrl !== undefined) return "postgrest";
  return backend?.postgres?.dsn === undefined ? "memory" : "postgres";
}

export function parseListen(listen: string): ListenAddress {
  const colon = listen.lastIndexOf(":");
  const host = listen.slice(0, colon).replaceAll(/^\[|\]$/g, "");
  return { host: host === "" ? undefined : host, port: Number(listen.slice(colon + 1)) };
}

function backendOf(config: FilledConfig): Backend {
  const { memory, postgres, postgrest, startWaitSeconds } = config.backend;
  const mode = backendMode(config);
  if (mode === "memory") return { mode, journal: memory?.journal };
  // The address was checked to be there: the rules of the configuration say so for these modes.
  const startWaitMs = startWaitSeconds * 1000;
  if (mode === "postgrest") {
    const { baseUrl = "", authHeader, schema } = postgrest ?? {};
    return { mode, baseUrl, authHeader, schema, startWaitMs };
  }
  const { dsn = "", schema, poolSize, listenDsn } = postgres;
  return { mode, dsn, schema, poolSize, listenDsn, startWaitMs };
}
