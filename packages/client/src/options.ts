/** The options of a client and of its calls: one table of defaults, all problems at once, unknown keys refused. */
import type { Telemetry } from "./telemetry.ts";
import { quietly } from "./timing.ts";

/** What happens while the service is unreachable; never when it is merely busy. */
export type OnFailure =
  /** Acquires fail. */
  | "closed"
  /** Work goes on without a slot. */
  | "open"
  /** Work goes on without a slot, at most this part of the host's last known limit at a time, for `forMs`. */
  | { readonly share: number; readonly forMs?: number };

/** Keeps a promise going after the caller has answered, as `ctx.waitUntil` of a Worker does. */
export type WaitUntil = (promise: Promise<unknown>) => void;

/** Options of `SlotClient`. Unknown keys are refused. */
export interface SlotClientOptions {
  /** Where the service is, for example `http://127.0.0.1:8080`; a path before `/api/v0` is kept. */
  readonly url: string;
  /** The shared key (`auth.token` of the service). */
  readonly token?: string | undefined;
  /** The header that carries the shared key (`auth.header` of the service). Default: `X-FQ-Auth`. */
  readonly header?: string;
  /** Another `fetch`. Default: that of the host. */
  readonly fetch?: typeof fetch;
  /** The whole wait of an `acquire`. Default: 20,000. */
  readonly maxWaitMs?: number;
  /** The longest time of one HTTP call. Default: 8,000. */
  readonly perRequestTimeoutMs?: number;
  /** Most failures of an `acquire` in a row. Quick answers are spaced by `maxWaitMs / maxAttempts`. Default: 35. */
  readonly maxAttempts?: number;
  /** What happens while the service is unreachable. Default: `"closed"`, acquires fail. */
  readonly onFailure?: OnFailure;
  /** Sends the host's SHA-256 in place of its name. Default: false. */
  readonly hashHostname?: boolean;
  /** Gets the promise of every release and cancellation, as `ctx.waitUntil` of a Worker does. Default: none. */
  readonly waitUntil?: WaitUntil | undefined;
  /** Starts a span for each wait and each hold. Default: none. */
  readonly telemetry?: Telemetry | undefined;
}

/** The place of a waiting call, as the service reports it. */
export interface Pending {
  /** 1 is next. */
  readonly position: number;
  /** The estimated wait, where the service knows it. */
  readonly estimatedWaitMs?: number | undefined;
  /** Sessions that wait for this host. */
  readonly waiters: number;
  /** What stands in the way: `host-limit`, `ip-limit`, `cooldown`, `waiter-pool`, `breaker` or `store`. */
  readonly blockedBy?: string | undefined;
}

/** Options of `acquire` and `run`. */
export interface AcquireOptions {
  /** The upstream host. */
  readonly hostname: string;
  /** Groups clients; absent: one shared bucket without a limit of its own. */
  readonly bucket?: string | undefined;
  /** Ends the wait with its own reason, and cancels it at the service. */
  readonly signal?: AbortSignal | undefined;
  /** Called after each answer that is not a slot yet. */
  readonly onPending?: ((pending: Pending) => void) | undefined;
  /** Overrides `maxWaitMs` of the client. */
  readonly maxWaitMs?: number | undefined;
  /** Overrides `waitUntil` of the client: a Worker has one per request. */
  readonly waitUntil?: WaitUntil | undefined;
}

/** Options of `acquire` and `run` of a semaphore of the service. */
export interface SemaphoreAcquireOptions {
  /** Ends the wait with its own reason. */
  readonly signal?: AbortSignal | undefined;
  /** Default: the longest wait of the service, a day. `0` does not wait. */
  readonly timeoutMs?: number | undefined;
}

/** What a release reports to the service. */
export interface ReleaseOptions {
  /** The upstream's status, for the breaker. */
  readonly status?: number | undefined;
  /** When the upstream was called, by `Date.now()`. */
  readonly hitUpstreamAtMs?: number | undefined;
}

const DEFAULTS = {
  header: "X-FQ-Auth",
  maxWaitMs: 20_000,
  perRequestTimeoutMs: 8_000,
  maxAttempts: 35,
  onFailure: "closed",
} as const satisfies Partial<SlotClientOptions>;

export type ResolvedOptions = SlotClientOptions & Required<Pick<SlotClientOptions, keyof typeof DEFAULTS | "fetch">>;

/** What an option must be, in the words of the message; the last of them is its `typeof`. "": checked elsewhere. */
type Kind = "a positive number" | "a non-empty string" | "a function" | "an object" | "a boolean" | "";
type Kinds<T> = { readonly [K in keyof Required<T>]: Kind };

const CLIENT_KINDS: Kinds<SlotClientOptions> = {
  url: "a non-empty string",
  token: "a non-empty string",
  header: "a non-empty string",
  fetch: "a function",
  maxWaitMs: "a positive number",
  perRequestTimeoutMs: "a positive number",
  maxAttempts: "a positive number",
  onFailure: "",
  hashHostname: "a boolean",
  waitUntil: "a function",
  telemetry: "an object",
};

export const ACQUIRE_KINDS: Kinds<AcquireOptions> = {
  hostname: "a non-empty string",
  bucket: "",
  signal: "an object",
  onPending: "a function",
  maxWaitMs: "a positive number",
  waitUntil: "a function",
};

export function resolveOptions(options: SlotClientOptions): ResolvedOptions {
  check(options, CLIENT_KINDS, "url");
  const resolved = { fetch, ...DEFAULTS, ...defined(options) } as ResolvedOptions;
  const { url, header, token = "", onFailure } = resolved;
  if (!/^https?:\/\/[\w[]/i.test(url)) throw unexpected("url", "an http(s) URL", url);
  const share = onFailure === "closed" || onFailure === "open" ? 0 : onFailure.share;
  if (!(share >= 0 && share <= 1)) throw unexpected("onFailure", "closed, open or a share", onFailure);
  // What no request can carry would pass for a service that is away. The values may be secrets: the message does not show them.
  if (/[?#]/.test(url) || !quietly(() => new Request(url, { headers: { [header]: token } }))) {
    throw new TypeError("Expected `url`, `header` and `token` to fit into a request");
  }
  return { ...resolved, url: url.replace(/\/+$/, "") };
}

function defined(options: object): object {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

/** All problems at once. */
export function check(options: object, kinds: { readonly [key: string]: Kind }, required = ""): void {
  if (Object(options) !== options) throw unexpected("options", "an object", options);
  const given = { ...(required && { [required]: null }), ...defined(options) };
  const problems = Object.entries(given).flatMap(([key, value]) => {
    const kind = kinds[key];
    if (kind === undefined) return `Unknown option \`${key}\``;
    return !kind || (typeof value === kind.split(" ").pop() && isSome(value))
      ? []
      : unexpected(key, kind, value).message;
  });
  if (problems[0]) throw new TypeError(problems.join("; "));
}

function isSome(value: unknown): boolean {
  return typeof value === "number" ? value > 0 && value < Infinity : value !== "" && value !== null;
}

export function unexpected(key: string, expectation: string, value: unknown, Misuse = TypeError): TypeError {
  return new Misuse(`Expected \`${key}\` to be ${expectation}, got ${JSON.stringify(value) ?? String(value)}`);
}
