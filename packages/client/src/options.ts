/**
 * The options of a client and of its calls: one table of defaults; one error lists all problems; unknown keys are
 * refused.
 */
import type { Telemetry } from "./telemetry.ts";
import { quietly } from "./timing.ts";

/** What happens while the service is unreachable. It does not apply while the service is only busy. */
export type OnFailure =
  /** Every acquire fails. */
  | "closed"
  /** All work continues without a slot. */
  | "open"
  /**
   * At most `share` × the last known limit of the host continues without a slot at a time, for `forMs` (default
   * 60,000).
   */
  | { readonly share: number; readonly forMs?: number };

/** Lets a promise finish after the caller has answered, like `ctx.waitUntil` of a Worker. */
export type WaitUntil = (promise: Promise<unknown>) => void;

/** Options of `SlotClient`. Unknown keys are refused. */
export interface SlotClientOptions {
  /** Address of the service, for example `http://127.0.0.1:8080`. A path in it is put before `/api/v0`. */
  readonly url: string;
  /** The shared key (`auth.token` of the service). */
  readonly token?: string | undefined;
  /** Header of the shared key (`auth.header` of the service). Default: `X-FQ-Auth`. */
  readonly header?: string;
  /** The function that sends requests. Default: the global `fetch`. */
  readonly fetch?: typeof fetch;
  /** Longest wait of an `acquire`, in milliseconds. Default: 20,000. */
  readonly maxWaitMs?: number;
  /** Timeout of one HTTP call, in milliseconds. Default: 8,000. */
  readonly perRequestTimeoutMs?: number;
  /**
   * An `acquire` gives up after this number of failed calls in a row. After a quick answer, the next call starts
   * `maxWaitMs / maxAttempts` after the last one, at most 500 ms. Default: 35.
   */
  readonly maxAttempts?: number;
  /** What happens while the service is unreachable. Default: `"closed"`, every acquire fails. */
  readonly onFailure?: OnFailure;
  /** Whether to send the SHA-256 of the host name instead of the name. Default: false. */
  readonly hashHostname?: boolean;
  /** Called with the promise of every release and cancellation: pass `ctx.waitUntil` of a Worker. Default: none. */
  readonly waitUntil?: WaitUntil | undefined;
  /** Starts a span for each wait and each hold. Default: none. */
  readonly telemetry?: Telemetry | undefined;
}

/** The place of a waiting call, as the service reports it. */
export interface Pending {
  /** The place in the queue; 1 is next. */
  readonly position: number;
  /** The estimated wait in milliseconds, if the service knows it. */
  readonly estimatedWaitMs?: number | undefined;
  /** The number of sessions that wait for this host. */
  readonly waiters: number;
  /** What the call waits for, for example `host-limit`; `blockedBy` in `docs/reference/http.md` lists all. */
  readonly blockedBy?: string | undefined;
}

/** Options of `acquire` and `run`. */
export interface AcquireOptions {
  /** The upstream host. */
  readonly hostname: string;
  /** The client group of this caller. Default: one shared bucket without a limit of its own. */
  readonly bucket?: string | undefined;
  /** The number of slots that the work needs. They are granted together. Default: 1. */
  readonly width?: number | undefined;
  /** What the work costs of the host's budgets, by name. Default: as the service has configured it. */
  readonly cost?: { readonly [budget: string]: number } | undefined;
  /** Values for the keys of the host, by name, for example `{ tenant: "acme" }`. Default: none. */
  readonly keys?: { readonly [key: string]: string } | undefined;
  /** The class of the work, one of the host's classes, for example `chat`. Default: `default`. */
  readonly class?: string | undefined;
  /** Ends the wait: `acquire` rejects with the signal's reason, and the service removes the session. */
  readonly signal?: AbortSignal | undefined;
  /** Called after each answer without a slot. Default: none. */
  readonly onPending?: ((pending: Pending) => void) | undefined;
  /** Overrides `maxWaitMs` of the client, in milliseconds. */
  readonly maxWaitMs?: number | undefined;
  /** Overrides `waitUntil` of the client: a Worker has one for each request. */
  readonly waitUntil?: WaitUntil | undefined;
}

/** Options of `acquire` and `run` of a semaphore of the service. */
export interface SemaphoreAcquireOptions extends Pick<AcquireOptions, "width" | "signal" | "onPending"> {
  /** The client group of this caller: all groups get equal shares of slot time. Default: one shared bucket. */
  readonly bucket?: string | undefined;
  /** Longest wait in milliseconds; `0` does not wait. Default: a day, the longest wait that the service allows. */
  readonly timeoutMs?: number | undefined;
}

/** What a release reports to the service. */
export interface ReleaseOptions {
  /** HTTP status of the upstream's answer, for the circuit breaker. Default: none. */
  readonly status?: number | undefined;
  /** When the upstream was called, as `Date.now()`. Default: none. */
  readonly hitUpstreamAtMs?: number | undefined;
  /** What the work really cost of the host's budgets, by name. Default: what was charged. */
  readonly used?: { readonly [budget: string]: number } | undefined;
  /** Called with the fields of `used` that the service ignored, such as `used.tokens`. Default: none. */
  readonly onIgnored?: ((fields: readonly string[]) => void) | undefined;
}

const DEFAULTS = {
  header: "X-FQ-Auth",
  maxWaitMs: 20_000,
  perRequestTimeoutMs: 8_000,
  maxAttempts: 35,
  onFailure: "closed",
} as const satisfies Partial<SlotClientOptions>;

export type ResolvedOptions = SlotClientOptions & Required<Pick<SlotClientOptions, keyof typeof DEFAULTS | "fetch">>;

/**
 * The expected kind of an option, as the message words it; the last word is its `typeof`. "" if it is checked
 * elsewhere.
 */
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
  width: "a positive number",
  cost: "an object",
  keys: "an object",
  class: "a non-empty string",
  signal: "an object",
  onPending: "a function",
  maxWaitMs: "a positive number",
  waitUntil: "a function",
};

const SHARE_KINDS = { share: "", forMs: "a positive number" } as const;

export function resolveOptions(options: SlotClientOptions): ResolvedOptions {
  const resolved = { fetch, ...DEFAULTS, ...check(options, CLIENT_KINDS, "url") } as ResolvedOptions;
  const { url, header, token = "" } = resolved;
  if (!/^https?:\/\/[\w[]/i.test(url)) throw unexpected("url", "an http(s) URL", url);
  const onFailure = checkedPolicy(resolved.onFailure);
  // Without this check, a value that no request can carry would look like an unreachable service. The message shows no
  // value, because it may be a secret.
  if (/[?#]/.test(url) || !quietly(() => new Request(url, { headers: { [header]: token } }))) {
    throw new TypeError("Expected `url`, `header` and `token` to fit into a request");
  }
  return { ...resolved, onFailure, url: url.replace(/\/+$/, "") };
}

function checkedPolicy(policy: OnFailure): OnFailure {
  if (policy === "closed" || policy === "open") return policy;
  const checked = isObject(policy) ? check(policy, SHARE_KINDS) : { share: "" };
  if (typeof checked.share === "number" && checked.share >= 0 && checked.share <= 1) return checked as OnFailure;
  throw unexpected("onFailure", '"closed", "open" or { share: 0 to 1 }', policy);
}

export function isObject(value: unknown): boolean {
  return Object(value) === value;
}

/**
 * Throws one error for all problems. Returns a copy without the keys that are `undefined`: a getter is read only once, so
 * the values that are used are those that were checked.
 */
export function check<T extends object>(options: T, kinds: { readonly [key: string]: Kind }, required = ""): T {
  if (!isObject(options)) throw unexpected("options", "an object", options);
  const given: { [key: string]: unknown } = {};
  if (required) given[required] = undefined;
  // Inherited keys too, so that an AbortSignal in place of the options is refused.
  for (const key in options) {
    const value = options[key];
    if (value !== undefined) given[key] = value;
  }
  const unknown = Object.keys(given).filter((key) => !Object.hasOwn(kinds, key));
  const problems = unknown[0] ? [unknownOptions(unknown, Object.keys(kinds))] : [];
  for (const [key, value] of Object.entries(given)) {
    const kind = !unknown.includes(key) && kinds[key];
    if (kind && !(typeof value === kind.split(" ").pop() && isSome(value))) {
      problems.push(unexpected(key, kind, value).message);
    }
  }
  if (problems[0]) throw new TypeError(problems.join("; "));
  return given as T;
}

/** The known names follow, the nearest first: by the pairs of neighbouring characters that they share. */
function unknownOptions(unknown: string[], known: string[]): string {
  const text = unknown.join().toLowerCase();
  const pairs = Array.from(text, (_, at) => text.slice(at, at + 2));
  const likeness = (name: string) => pairs.filter((pair) => name.toLowerCase().includes(pair)).length;
  return `Unknown option ${quoted(unknown)} (known: ${quoted(known.sort((a, b) => likeness(b) - likeness(a)))})`;
}

function quoted(names: string[]): string {
  return `\`${names.join("`, `")}\``;
}

function isSome(value: unknown): boolean {
  return typeof value === "number" ? value > 0 && value < Infinity : value !== "" && value !== null;
}

export function unexpected(key: string, expectation: string, value: unknown, Misuse = TypeError): TypeError {
  // JSON has no NaN and no undefined.
  const text = (typeof value !== "number" && quietly(() => JSON.stringify(value))) || String(value);
  // The shared key, and what may be a password or a key in an address, are not shown.
  const shown = value && key === "token" ? typeof value : text.replace(/.*@|\?.*/gs, "…").slice(0, 100);
  return new Misuse(`Expected \`${key}\` to be ${expectation}, got ${shown}`);
}
