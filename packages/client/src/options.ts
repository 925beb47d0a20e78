/** The options of a client and of its calls: one table of defaults, all problems at once, unknown keys refused. */
import type { Telemetry } from "./telemetry.ts";

/** What happens while the service is unreachable; never when it is merely busy. */
export type OnFailure =
  /** Acquires fail. */
  | "closed"
  /** Work goes on without a slot. */
  | "open"
  /** Work goes on without a slot, but at once only for this part of the host's last known limit, for so long. */
  | { readonly share: number; readonly forMs?: number };

/** Keeps a promise going after the caller has answered, as `ctx.waitUntil` of a Worker does. */
export type WaitUntil = (promise: Promise<unknown>) => void;

export interface SlotClientOptions {
  /** Where the service is, for example `http://127.0.0.1:8080`; a path before `/api/v0` is kept. */
  readonly url: string;
  /** The shared key (`auth.token` of the service). */
  readonly token?: string | undefined;
  readonly header?: string;
  readonly fetch?: typeof fetch;
  /** The whole wait of an `acquire`. */
  readonly maxWaitMs?: number;
  readonly perRequestTimeoutMs?: number;
  /** Most calls of an `acquire`; quick answers are spaced so that they last for `maxWaitMs`. */
  readonly maxAttempts?: number;
  readonly onFailure?: OnFailure;
  /** Sends the host's SHA-256 in place of its name. */
  readonly hashHostname?: boolean;
  readonly waitUntil?: WaitUntil | undefined;
  readonly telemetry?: Telemetry | undefined;
}

export interface Pending {
  /** 1 is next. */
  readonly position: number;
  readonly estimatedWaitMs: number | undefined;
  readonly waiters: number;
  readonly blockedBy: string | undefined;
}

export interface AcquireOptions {
  readonly hostname: string;
  /** Groups clients; absent: one shared bucket without a limit of its own. */
  readonly bucket?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onPending?: ((pending: Pending) => void) | undefined;
  /** Instead of the client's. */
  readonly maxWaitMs?: number | undefined;
  /** Instead of the client's: a Worker has one per request. */
  readonly waitUntil?: WaitUntil | undefined;
}

export interface SemaphoreAcquireOptions {
  readonly signal?: AbortSignal | undefined;
  /** Default: no limit but the service's, a day. `0`: now or never. */
  readonly timeoutMs?: number | undefined;
}

export interface ReleaseOptions {
  /** The upstream's status, for the breaker. */
  readonly status?: number | undefined;
  /** When the upstream was called, by `Date.now()`. */
  readonly hitUpstreamAtMs?: number | undefined;
}

export const DEFAULTS = {
  token: undefined,
  header: "X-FQ-Auth",
  maxWaitMs: 20_000,
  perRequestTimeoutMs: 8_000,
  maxAttempts: 35,
  onFailure: "closed",
  hashHostname: false,
  waitUntil: undefined,
  telemetry: undefined,
} as const satisfies Omit<Required<SlotClientOptions>, "url" | "fetch">;

export type ResolvedOptions = Required<SlotClientOptions>;

type Rule = readonly [expectation: string, isGood: (value: unknown) => boolean];

const isString = (value: unknown) => typeof value === "string" && value !== "";
const isFunction = (value: unknown) => typeof value === "function";
const isPositive = (value: unknown) => typeof value === "number" && value > 0 && value < Infinity;
const positive: Rule = ["a number of milliseconds above 0", isPositive];
const aFunction: Rule = ["a function", isFunction];
const has = (value: unknown, method: string) => isFunction((value as { [key: string]: unknown } | null)?.[method]);
const aSignal: Rule = ["an AbortSignal", (value) => has(value, "addEventListener")];

const CLIENT_RULES: { readonly [K in keyof SlotClientOptions]-?: Rule } = {
  url: ["an http or https URL", (value) => isString(value) && /^https?:\/\/[^/]/i.test(value as string)],
  token: ["a string that is not empty", isString],
  header: ["a header's name", (value) => typeof value === "string" && /^[\w!#$%&'*+.^`|~-]+$/.test(value)],
  fetch: aFunction,
  maxWaitMs: positive,
  perRequestTimeoutMs: positive,
  maxAttempts: ["an integer of at least 1", (value) => Number.isInteger(value) && (value as number) >= 1],
  onFailure: ['"closed", "open" or { share: 0…1, forMs > 0 }', isFailurePolicy],
  hashHostname: ["a boolean", (value) => typeof value === "boolean"],
  waitUntil: aFunction,
  telemetry: ["an object with a function `start`", (value) => has(value, "start")],
};

const ACQUIRE_RULES: { readonly [K in keyof AcquireOptions]-?: Rule } = {
  hostname: ["a string that is not empty", isString],
  bucket: ["a string", (value) => typeof value === "string"],
  signal: aSignal,
  onPending: aFunction,
  maxWaitMs: positive,
  waitUntil: aFunction,
};

const SEMAPHORE_RULES: { readonly [K in keyof SemaphoreAcquireOptions]-?: Rule } = {
  signal: aSignal,
  timeoutMs: ["a number of milliseconds of at least 0", (value) => typeof value === "number" && value >= 0],
};

const RELEASE_RULES: { readonly [K in keyof ReleaseOptions]-?: Rule } = {
  status: ["an HTTP status", (value) => Number.isInteger(value) && Number(value) >= 100 && Number(value) <= 599],
  hitUpstreamAtMs: ["a time in milliseconds", Number.isFinite],
};

export function resolveOptions(options: SlotClientOptions): ResolvedOptions {
  check("SlotClient", options, CLIENT_RULES, "url");
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
  const own = { fetch: globalThis.fetch, ...DEFAULTS, ...given } as ResolvedOptions;
  return { ...own, url: own.url.replace(/\/+$/, "") };
}

export const checkAcquire = (options: AcquireOptions) => check("acquire", options, ACQUIRE_RULES, "hostname");
export const checkSemaphoreAcquire = (options: SemaphoreAcquireOptions) => check("acquire", options, SEMAPHORE_RULES);
export const checkRelease = (options: ReleaseOptions) => check("release", options, RELEASE_RULES);

export function checkWork(work: unknown): void {
  if (!isFunction(work)) throw new TypeError(`Expected the work to be a function, got ${shown(work)}`);
}

function isFailurePolicy(value: unknown): boolean {
  if (value === "closed" || value === "open") return true;
  const { share, forMs = 1 } = (value ?? {}) as { share?: unknown; forMs?: unknown };
  return typeof share === "number" && share >= 0 && share <= 1 && isPositive(forMs);
}

function check(what: string, options: object, rules: { readonly [key: string]: Rule }, required?: string): void {
  if (typeof options !== "object" || options === null) {
    throw new TypeError(`Expected the options of ${what} to be an object, got ${shown(options)}`);
  }
  const problems: string[] = [];
  const entries = Object.entries(options);
  if (required !== undefined && !entries.some(([key]) => key === required)) entries.push([required, undefined]);
  for (const [key, value] of entries) {
    const rule = Object.hasOwn(rules, key) ? rules[key] : undefined;
    if (rule === undefined) problems.push(`Unknown option \`${key}\` of ${what}`);
    else if (value === undefined && key !== required) continue;
    else if (!rule[1](value)) problems.push(`Expected \`${key}\` to be ${rule[0]}, got ${shown(value)}`);
  }
  if (problems.length > 0) throw new TypeError(problems.join("; "));
}

function shown(value: unknown): string {
  return typeof value === "function" ? "a function" : (JSON.stringify(value) ?? String(value));
}
