/** Options as the user gives them, what they are checked for, and what they come to. */
import { PLAIN, type Policy, type PolicyOptions } from "../policy.ts";
import type { AdaptiveLimits } from "./adaptive-slots.ts";
import type { BudgetLimits } from "./budget.ts";

export interface BudgetOptions {
  /** Units per `perMs`; they flow in continuously. */
  limit: number;
  perMs: number;
  /** The most that can be saved up, and so the most that one request may cost. Default: `limit`. */
  burst?: number | undefined;
  /** The cost of a request that names none. Default 1. */
  default?: number | undefined;
  /** At most `limit` in any window of `perMs`, for upstreams that count so. Takes no `burst`. */
  strict?: boolean | undefined;
}

type BudgetTable<B extends string> = { [Name in B]?: BudgetOptions | undefined };

export interface PerKeyOptions<B extends string = string> {
  /** Slots for each key; default unlimited. */
  slots?: number | undefined;
  /** Budgets of each key. A cost is charged to the key's budget and to the common one of the same name. */
  budgets?: BudgetTable<B> | undefined;
}

export interface LimiterOptions<B extends string = string> extends PolicyOptions {
  /** How many at the same time. Default `Infinity`. */
  slots?: number | undefined;
  budgets?: BudgetTable<B> | undefined;
  /** Limits for each key. With it, the key with the smallest charged share goes first. */
  perKey?: PerKeyOptions<B> | undefined;
  /** How many priorities there are; level 0 goes first. Default 1. */
  levels?: number | undefined;
  /** A waiter rises by one level every so often. Default: never. */
  ageAfterMs?: number | undefined;
  /** The number of slots follows what the upstream takes: from `start`, not below `min`, not above `slots`. */
  adaptive?: { min?: number | undefined; start?: number | undefined } | undefined;
}

/** What `update` changes. Of budgets, what is left out stays as it is. */
export interface LimiterUpdate<B extends string = string> {
  slots?: number | undefined;
  budgets?: { [Name in B]?: Partial<BudgetOptions> | undefined } | undefined;
  perKey?:
    | { slots?: number | undefined; budgets?: { [Name in B]?: Partial<BudgetOptions> | undefined } | undefined }
    | undefined;
  ageAfterMs?: number | undefined;
}

/** A budget as checked: its limits, and the cost of a request that names none. */
export interface ResolvedBudget extends BudgetLimits {
  readonly default: number | undefined;
}

export interface LimiterPolicy extends Policy {
  slots: number;
  readonly levels: number;
  ageAfterMs: number;
}

const DEFAULTS = { ...PLAIN, slots: Infinity, levels: 1, ageAfterMs: Infinity };
/** What an option has to be if its default does not tell, and the least of those that may not be 0. */
const KINDS: Record<string, string> = { name: "string", onEvent: "function" };
const LEAST: Record<string, number> = { ttlMs: 1, slots: 1, levels: 1, ageAfterMs: 1 };
const NESTED = ["budgets", "perKey", "adaptive"];

/** All that is not nested, checked; all problems are said at once. */
export function resolveLimiterPolicy(options: LimiterOptions): LimiterPolicy {
  refuseUnknown("options", options, [...Object.keys(DEFAULTS), ...NESTED]);
  const given = Object.entries(options).filter(([name, value]) => value !== undefined && !NESTED.includes(name));
  const policy = { ...DEFAULTS, ...Object.fromEntries(given) };
  const problems = given.map(([name, value]) => problemOf(name, value)).filter((problem) => problem !== undefined);
  const { levels, ttlMs, onEvent, abortOnExpiry } = policy;
  if (levels > MOST_LEVELS) problems.push(new RangeError(expected("levels", `at most ${MOST_LEVELS}`, levels)));
  const [first] = problems;
  if (first) throw problems.length === 1 ? first : new TypeError(problems.map(({ message }) => message).join("; "));
  return { ...policy, isPlain: ttlMs === Infinity && !onEvent && !abortOnExpiry };
}

/** Every grant looks at all of them. */
const MOST_LEVELS = 100;

function problemOf(name: string, value: unknown): Error | undefined {
  const kind = KINDS[name] ?? typeof DEFAULTS[name as keyof typeof DEFAULTS];
  if (kind === "number") return numberProblem(name, value, LEAST[name]);
  if (typeof value === kind && value !== null) return undefined;
  return new TypeError(expected(name, kind === "object" ? "an object" : `a ${kind}`, value));
}

/** All numbers but those in milliseconds are integers, or `Infinity`. */
function numberProblem(field: string, value: unknown, least = 0, most = Infinity): Error | undefined {
  const isDuration = field.endsWith("Ms");
  const expectation = `${isDuration ? "a number" : "an integer"} from ${least} to ${most}`;
  if (typeof value !== "number") return new TypeError(expected(field, expectation, value));
  // The remainder of `Infinity` is `NaN`.
  const isFine = value >= least && value <= most && (isDuration || !(value % 1));
  return isFine ? undefined : new RangeError(expected(field, expectation, value));
}

/** Refuses a number that is out of range. */
export function check(field: string, value: unknown, least?: number, most?: number): void {
  const problem = numberProblem(field, value, least, most);
  if (problem) throw problem;
}

export function resolveAdaptive(options: LimiterOptions["adaptive"], slots: number): AdaptiveLimits | undefined {
  if (options === undefined) return undefined;
  refuseUnknown("adaptive", options, ["min", "start"]);
  if (slots === Infinity) throw new RangeError(expected("slots", "finite if `adaptive` is given", slots));
  const { min = 1, start = min } = options;
  check("adaptive.min", min, 1, slots);
  check("adaptive.start", start, min, slots);
  return { min, start };
}

/** The options of `perKey` that are not budgets. */
export function slotsPerKey(options: PerKeyOptions | LimiterUpdate["perKey"]): number {
  if (options === undefined) return Infinity;
  refuseUnknown("perKey", options, ["slots", "budgets"]);
  const { slots = Infinity } = options;
  check("perKey.slots", slots, 1);
  return slots;
}

/** Checks a table of budgets and gives them by name. `field` says which table in errors. */
export function resolveBudgets(field: string, table: BudgetTable<string> = {}): Map<string, ResolvedBudget> {
  if (typeof table !== "object" || table === null) throw new TypeError(expected(field, "an object", table));
  const named = Object.entries(table).filter((entry) => entry[1] !== undefined);
  return new Map(named.map(([name, budget]) => [name, resolveBudget(`${field}.${name}`, budget as BudgetOptions)]));
}

function resolveBudget(field: string, budget: BudgetOptions): ResolvedBudget {
  refuseUnknown(field, budget, ["limit", "perMs", "burst", "default", "strict"]);
  const { limit, perMs, strict = false, burst = limit } = budget;
  if (typeof strict !== "boolean") throw new TypeError(expected(`${field}.strict`, "a boolean", strict));
  if (strict && budget.burst !== undefined) {
    throw new TypeError(expected(`${field}.burst`, "left out, since a strict budget saves nothing up", budget.burst));
  }
  checkAmount(`${field}.limit`, limit, Number.MIN_VALUE);
  checkAmount(`${field}.perMs`, perMs, Number.MIN_VALUE);
  checkAmount(`${field}.burst`, burst, Number.MIN_VALUE);
  if (budget.default !== undefined) checkAmount(`${field}.default`, budget.default, 0, burst);
  return { limit, perMs, burst, strict, default: budget.default };
}

/** An amount may be a fraction, but not endless. */
export function checkAmount(field: string, value: unknown, least: number, most: number = Number.MAX_VALUE): void {
  const range = least > 0 ? "above 0" : "from 0 up";
  if (typeof value !== "number") throw new TypeError(expected(field, `a number ${range}`, value));
  if (value >= least && value <= most) return;
  throw new RangeError(
    expected(field, most < Number.MAX_VALUE ? `from ${least} to ${most}` : `finite and ${range}`, value),
  );
}

/** Refuses what is not an object, and fields that nobody knows. */
export function refuseUnknown(field: string, options: unknown, known: readonly string[]): void {
  if (typeof options !== "object" || options === null) throw new TypeError(expected(field, "an object", options));
  for (const name in options) {
    if (!known.includes(name)) throw new TypeError(`Unknown option \`${name}\` of \`${field}\``);
  }
}

export function expected(field: string, expectation: string, value: unknown): string {
  return `Expected \`${field}\` to be ${expectation}, got ${typeof value === "string" ? `"${value}"` : String(value)}`;
}
