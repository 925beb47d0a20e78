import type { CleanupConfig, FairQueueConfig, ServiceConfig } from "@slotkeeper/protocol";
import type { LogLevel } from "../log/logger.ts";

/** The configuration as the service uses it, with all defaults. */
export interface Settings {
  readonly listen: ListenAddress;
  readonly logLevel: LogLevel;
  /** `undefined` if all callers are accepted. */
  readonly auth: { readonly header: string; readonly keys: readonly string[] } | undefined;
  readonly authHeader: string;
  /** `undefined` if the service creates a key and keeps it in the store. */
  readonly tokenKeys: readonly string[] | undefined;
  readonly corsOrigins: readonly string[];
  readonly backend: Backend;
  readonly internalApiToken: string | undefined;
  /** `undefined` if the scraper uses the internal one. */
  readonly metricsToken: string | undefined;
  readonly limits: ServiceLimits;
  readonly shutdown: ShutdownTimes;
  readonly identity: Identity;
  /** `undefined` if there is no control plane. */
  readonly controller: ControllerAddress | undefined;
  readonly fairQueue: FairQueueConfig;
  /** `undefined` for no cleanup. */
  readonly cleanupEveryMs: number | undefined;
}

/** The limits of one service; `Infinity` for no limit. */
export interface ServiceLimits {
  readonly connections: number;
  readonly connectionsPerAddress: number;
  readonly heldPolls: number;
  readonly hosts: number;
}

/** The times of a graceful stop. */
export interface ShutdownTimes {
  /** How long new requests are still answered, in milliseconds, so that a balancer sees `/readyz` become 503. */
  readonly graceMs: number;
  /** When connections that are still open are closed, in milliseconds after the signal. */
  readonly deadlineMs: number;
}

export interface ListenAddress {
  /** `undefined` for every address of the machine. */
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
      /** A direct address for notifications, if `dsn` is a transaction pooler. */
      readonly listenDsn: string | undefined;
      /** How long a start waits for a database that is not reachable yet, in milliseconds. */
      readonly startWaitMs: number;
    }
  | {
      readonly mode: "postgrest";
      readonly baseUrl: string;
      readonly authHeader: string | undefined;
      /** `undefined` for the first schema that PostgREST exposes. */
      readonly schema: string | undefined;
      readonly startWaitMs: number;
    };

export interface ControllerAddress {
  /** The address with its prefix, without a slash at the end. */
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

/** The keys that always have a value, because the schema has their defaults. */
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

/** The settings of a checked configuration. */
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
    metricsToken: config.metrics?.token,
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
    cleanupEveryMs: isSwept && intervalSeconds > 0 ? intervalSeconds * 1000 : undefined,
  };
}

function limitsOf({ limits }: FilledConfig): ServiceLimits {
  const entries = Object.entries(limits).map(([name, limit]) => [name, limit > 0 ? limit : Number.POSITIVE_INFINITY]);
  return Object.fromEntries(entries) as Record<keyof ServiceLimits, number>;
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

/** `backend.mode`; if it is absent, `postgrest` or `postgres` if the address of one is set, otherwise `memory`. */
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
  // The rules of the configuration have checked that the address exists in these modes.
  const startWaitMs = startWaitSeconds * 1000;
  if (mode === "postgrest") {
    const { baseUrl = "", authHeader, schema } = postgrest ?? {};
    return { mode, baseUrl, authHeader, schema, startWaitMs };
  }
  const { dsn = "", schema, poolSize, listenDsn } = postgres;
  return { mode, dsn, schema, poolSize, listenDsn, startWaitMs };
}
