import type { Settings } from "./setting.ts";
import { expected, NAME_PROBLEM, nameProblems, numberProblems, tableProblems } from "./setting-checks.ts";

/**
 * The keys of one budget in `budgets`, of `fairQueue`, a host or a key. The bounds keep levels and times exact: the level of a
 * budget has a relative error of 1e-16, and a budget that needs more than a year to refill is a mistake.
 */
export const BUDGET_SETTINGS = {
  limit: { type: "number", unit: "count", min: 1e-6, max: 1e12 },
  perSeconds: { type: "number", unit: "seconds", min: 1e-3, max: 31_536_000 },
  burst: { type: "number", unit: "count", min: 1e-6, max: 1e12 },
  default: { type: "number", unit: "count", min: 0, default: 1 },
  shadow: { type: "flag", default: false },
} as const satisfies Settings;

/** The name of the slots of a host among its quotas, in the headers of an answer. No budget has it. */
export const SLOTS_QUOTA = "slots";

/** The name of the budget in an order like `budget:tokens`. Undefined: another order. */
export function budgetOfOrder(order: string | undefined): string | undefined {
  return order?.startsWith("budget:") === true ? order.slice("budget:".length) : undefined;
}

/** What is wrong with the order of a host that has these budgets, as a sentence. */
export function orderProblems(order: unknown, budgets: object | null | undefined, path: string): string[] {
  const name = typeof order === "string" ? budgetOfOrder(order) : undefined;
  if (name === undefined || Object.hasOwn(budgets ?? {}, name)) return [];
  return [`Expected \`${path}.order\` to name a budget of the host, got ${JSON.stringify(order)}`];
}

/** A budget as the engine and stores have it. */
export interface BudgetPolicy {
  readonly limit: number;
  readonly perMs: number;
  readonly burst: number;
  /** The cost of a request that does not name it. */
  readonly default: number;
  /** It is charged and counted, but not enforced. */
  readonly isShadow?: true;
}

/** The budgets of a host, by name. */
export type BudgetPolicies = { readonly [name: string]: BudgetPolicy };

/** Whether requests wait for one of the budgets. */
export function hasEnforced(budgets: BudgetPolicies | undefined): boolean {
  return budgets !== undefined && Object.values(budgets).some(({ isShadow }) => isShadow !== true);
}

/** One budget of a configuration. */
export interface BudgetConfig {
  readonly limit: number;
  readonly perSeconds: number;
  readonly burst?: number | undefined;
  readonly default?: number | undefined;
  readonly shadow?: boolean | undefined;
}

/** Budgets of a configuration in the engine's units. Undefined: there are none. `isShadow`: of those that do not say it. */
export function resolveBudgets(
  budgets: { readonly [name: string]: BudgetConfig } = {},
  isShadow = false,
): BudgetPolicies | undefined {
  const entries = Object.entries(budgets).map(([name, { limit, perSeconds, burst, default: cost, shadow }]) => [
    name,
    {
      limit,
      perMs: perSeconds * 1000,
      burst: burst ?? limit,
      default: cost ?? BUDGET_SETTINGS.default.default,
      ...((shadow ?? isShadow) ? { isShadow: true } : {}),
    },
  ]);
  return entries.length === 0 ? undefined : (Object.fromEntries(entries) as BudgetPolicies);
}

/** What is wrong with the budgets of a configuration, as a sentence each, with the path of the key. */
export function budgetProblems(budgets: unknown, path: string, most: number): string[] {
  return tableProblems(budgets, path, "budgets", most, budgetProblem);
}

function budgetProblem(name: string, budget: unknown, path: string): string[] {
  const {
    limit,
    perSeconds,
    burst = limit,
    default: cost = 1,
    shadow = false,
    ...unknown
  } = Object(budget) as { [key: string]: unknown };
  const isPayable = Number.isFinite(cost) && (cost as number) >= 0 && !((cost as number) > (burst as number));
  return [
    ...nameProblems(name, path),
    ...(name === SLOTS_QUOTA
      ? [`${NAME_PROBLEM} \`${path}\` to be another one: the header RateLimit has it for the slots`]
      : []),
    ...Object.keys(unknown).map((key) => `Unknown key \`${path}.${key}\``),
    ...numberProblems(BUDGET_SETTINGS.limit, `${path}.limit`, limit),
    ...numberProblems(BUDGET_SETTINGS.perSeconds, `${path}.perSeconds`, perSeconds),
    ...numberProblems(BUDGET_SETTINGS.burst, `${path}.burst`, burst),
    ...expected(isPayable, `${path}.default`, "a number from 0 to `burst`", cost),
    ...expected(typeof shadow === "boolean", `${path}.shadow`, "true or false", shadow),
  ];
}
