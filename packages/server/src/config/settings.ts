import { CLEANUP_SETTINGS, type FairQueueConfig, type ServiceConfig } from "@slotkeeper/protocol";

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

/** From a configuration that has been checked, defaults included. */
export function settingsOf(config: ServiceConfig): Settings {
  const { auth, fairQueue, controller } = config;
  const { rpc: _names, ...engine } = fairQueue ?? {};
  const header = auth?.header ?? "X-FQ-Auth";
  const cleanup = engine.cleanup;
  return {
    listen: parseListen(config.listen ?? "127.0.0.1:8080"),
    logLevel: config.logLevel ?? "info",
    auth: auth?.enabled === true ? { header, keys: sharedKeys(config) } : undefined,
    authHeader: header,
    tokenKeys: config.tokenKeys,
    corsOrigins: config.cors?.origins ?? [],
    backend: backendOf(config),
    internalApiToken: config.internalApiToken,
    limits: limitsOf(config),
    shutdown: { graceMs: config.shutdown?.graceMs ?? 1_000, deadlineMs: config.shutdown?.deadlineMs ?? 10_000 },
    identity: {
      appName: controller?.appName ?? "slotkeeper",
      appVersion: controller?.appVersion,
      env: controller?.env,
      role: controller?.role ?? "slot-handler",
      instanceId: controller?.instanceId,
    },
    controller: controllerOf(config),
    fairQueue: engine,
    cleanupEveryMs:
      cleanup?.enabled === false
        ? undefined
        : (cleanup?.intervalSeconds ?? CLEANUP_SETTINGS.intervalSeconds.default) * 1000,
  };
}

function limitsOf({ limits = {} }: ServiceConfig): ServiceLimits {
  return {
    connections: orUnlimited(limits.connections ?? 20_000),
    connectionsPerAddress: orUnlimited(limits.connectionsPerAddress ?? 0),
    heldPolls: orUnlimited(limits.heldPolls ?? 20_000),
    hosts: orUnlimited(limits.hosts ?? 100_000),
  };
}

function orUnlimited(limit: number): number {
  return limit > 0 ? limit : Number.POSITIVE_INFINITY;
}

function controllerOf({ controller }: ServiceConfig): ControllerAddress | undefined {
  if (controller?.url === undefined || controller.apiToken === undefined) return undefined;
  const prefix = (controller.apiPrefix ?? "/api/v0").replaceAll(/^\/+|\/+$/g, "");
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

function backendOf(config: ServiceConfig): Backend {
  const { memory, postgres, postgrest, startWaitSeconds = 20 } = config.backend ?? {};
  const mode = backendMode(config);
  if (mode === "memory") return { mode, journal: memory?.journal };
  // The address was checked to be there: the rules of the configuration say so for these modes.
  const startWaitMs = startWaitSeconds * 1000;
  if (mode === "postgrest") {
    const { baseUrl = "", authHeader, schema } = postgrest ?? {};
    return { mode, baseUrl, authHeader, schema, startWaitMs };
  }
  const { dsn = "", schema = "public", poolSize = 10, listenDsn } = postgres ?? {};
  return { mode, dsn, schema, poolSize, listenDsn, startWaitMs };
}
