/** Options as the user gives them, what they are checked for, and what they come to. */
import { type Clock, realClock } from "./clock.ts";
import type { SemaphoreEvent } from "./events.ts";

/** What every kind of semaphore can be told. */
export interface PolicyOptions {
  /** Shown in events, errors and statistics. */
  name?: string | undefined;
  /** A held slot is taken back after this long. */
  ttlMs?: number | undefined;
  /** The `timeoutMs` of an acquire that names none. */
  acquireTimeoutMs?: number | undefined;
  /** Abort `slot.signal`, and so the work, when the ttl takes the slot back. */
  abortOnExpiry?: boolean | undefined;
  /** How many may wait; default unbounded. */
  maxWaiters?: number | undefined;
  clock?: Clock | undefined;
  /** Called synchronously; what it throws is ignored. */
  onEvent?: ((event: SemaphoreEvent) => void) | undefined;
}

export interface AcquireOptions {
  /** Ends the wait: the promise rejects with the signal's own reason. */
  signal?: AbortSignal | undefined;
  /** Longest wait; 0 means now or never, `Infinity` for ever. */
  timeoutMs?: number | undefined;
  /** How many slots to take at once; default 1. */
  width?: number | undefined;
}

/** `PolicyOptions`, checked and with nothing left open. */
export interface Policy extends Required<PolicyOptions> {
  readonly ttlMs: number;
  readonly acquireTimeoutMs: number;
  readonly maxWaiters: number;
  readonly clock: Clock;
  /** No ttl, and nobody to tell: taking and returning a slot is counting, and nothing else. */
  readonly isPlain: boolean;
}

export const PLAIN: Omit<Policy, "isPlain"> = {
  name: undefined,
  ttlMs: Infinity,
  acquireTimeoutMs: Infinity,
  abortOnExpiry: false,
  maxWaiters: Infinity,
  clock: realClock,
  onEvent: undefined,
};

/** What an option has to be if its default does not tell, and the least of those that may not be 0. */
const KINDS: Record<string, string> = { name: "string", onEvent: "function" };
const LEAST: Record<string, number> = { ttlMs: 1, sweepEveryMs: 1 };

/** What is wrong with a value, as a sentence. All numbers but those in milliseconds are integers, or `Infinity`. */
function problem(field: string, value: unknown, kind: string, least = 0, most = Infinity): string | undefined {
  const isNumber = kind === "number";
  const isDuration = field.endsWith("Ms");
  if (typeof value === kind && value !== null) {
    const number = value as number;
    // The remainder of `Infinity` is `NaN`.
    if (!isNumber || (number >= least && number <= most && (isDuration || !(number % 1)))) return undefined;
  }
  const range = `${isDuration ? "a number" : "an integer"} from ${least} to ${most}`;
  return expected(field, isNumber ? range : kind, value);
}

export function expected(field: string, expectation: string, value: unknown): string {
  return `Expected \`${field}\` to be ${expectation}, got ${typeof value === "string" ? `"${value}"` : String(value)}`;
}

/** Refuses a number that is out of range. */
export function check(field: string, value: number, least?: number, most?: number): void {
  const message = problem(field, value, "number", least, most);
  if (message) throw new RangeError(message);
}

/**
 * The defaults and what is given instead. Refuses what is wrong, all of it in one error, a `RangeError` if all of it is
 * about numbers. An option that has no default is unknown.
 */
export function resolveOptions<T extends object>(defaults: T, options: { [K in keyof T]?: T[K] | undefined }): T {
  const problems: string[] = [];
  let Kind: ErrorConstructor = RangeError;
  const resolved = { ...defaults };
  for (const [key, value] of Object.entries(options)) {
    if (value === undefined) continue;
    const isKnown = Object.hasOwn(defaults, key);
    const kind = KINDS[key] ?? typeof defaults[key as keyof T];
    const message = isKnown ? problem(key, value, kind, LEAST[key]) : `Unknown option \`${key}\``;
    if (message) {
      problems.push(message);
      if (kind !== "number") Kind = TypeError;
    }
    resolved[key as keyof T] = value as T[keyof T];
  }
  if (problems[0]) throw new Kind(problems.join("; "));
  return resolved;
}

/** As `resolveOptions`, for those who hand out slots. */
export function resolvePolicy<T extends Omit<Policy, "isPlain">>(
  defaults: T,
  options: { [K in keyof T]?: T[K] | undefined },
): T & Policy {
  const policy = resolveOptions(defaults, options);
  return { ...policy, isPlain: policy.ttlMs === Infinity && !policy.onEvent && !policy.abortOnExpiry };
}
