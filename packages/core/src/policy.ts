/** Options as the user gives them, what they are checked for, and what they come to. */
import type { Clock } from "./clock.ts";
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
export interface Policy {
  readonly name: string | undefined;
  readonly ttlMs: number;
  readonly acquireTimeoutMs: number;
  readonly abortOnExpiry: boolean;
  readonly maxWaiters: number;
  readonly clock: Clock | undefined;
  readonly onEvent: ((event: SemaphoreEvent) => void) | undefined;
  /** No ttl, and nobody to tell: taking and returning a slot is counting, and nothing else. */
  readonly isPlain: boolean;
}

export const PLAIN: Policy = {
  name: undefined,
  ttlMs: Infinity,
  acquireTimeoutMs: Infinity,
  abortOnExpiry: false,
  maxWaiters: Infinity,
  clock: undefined,
  onEvent: undefined,
  isPlain: true,
};

/** The least that a number may be. Those in milliseconds may be fractions, all but a width may be `Infinity`. */
const LEAST: Record<string, number> = {
  slots: 1,
  slotsPerKey: 1,
  width: 1,
  max: 0,
  maxPerKey: 0,
  maxWaiters: 0,
  limit: 0,
  timeoutMs: 0,
  acquireTimeoutMs: 0,
  idleMs: 0,
  ttlMs: 1,
  sweepEveryMs: 1,
};

/** An example of what any other option has to be. */
const LIKE: Record<string, unknown> = {
  name: "",
  abortOnExpiry: false,
  clock: {},
  registry: {},
  onEvent: problem,
};

/** What is wrong with a field's value, as a sentence. */
export function problem(field: string, value: unknown, most: number = Infinity): string | undefined {
  const least = LEAST[field];
  let expectation = `of type ${typeof LIKE[field]}`;
  if (least !== undefined) {
    if (isNumber(value, field) && value >= least && value <= most) return undefined;
    expectation = `${field.endsWith("Ms") ? "a number" : "an integer"} from ${least} to ${most}`;
  } else if (typeof value === typeof LIKE[field] && value !== null) return undefined;
  return `Expected \`${field}\` to be ${expectation}, got ${typeof value === "string" ? `"${value}"` : String(value)}`;
}

function isNumber(value: unknown, field: string): value is number {
  return (
    typeof value === "number" &&
    (field.endsWith("Ms") || Number.isInteger(value) || (value === Infinity && field !== "width"))
  );
}

/** Refuses a number that is out of range. */
export function check(field: string, value: number): void {
  const message = problem(field, value);
  if (message !== undefined) throw new RangeError(message);
}

/** Refuses what is wrong or unknown, all of it in one error. */
export function checkOptions(options: object, ...known: string[]): void {
  const problems: string[] = [];
  let Kind: ErrorConstructor = RangeError;
  for (const [key, value] of Object.entries(options)) {
    if (value === undefined) continue;
    const message = known.includes(key) ? problem(key, value) : `Unknown option \`${key}\``;
    if (message === undefined) continue;
    problems.push(message);
    if (!(key in LEAST && known.includes(key))) Kind = TypeError;
  }
  if (problems.length > 0) throw new Kind(problems.join("; "));
}

/** `more` are the options beyond those of `PolicyOptions`. */
export function resolvePolicy(options: PolicyOptions, ...more: string[]): Policy {
  checkOptions(options, ...Object.keys(PLAIN), ...more);
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
  const policy: Policy = { ...PLAIN, ...given };
  return { ...policy, isPlain: policy.ttlMs === Infinity && !policy.onEvent && !policy.abortOnExpiry };
}
