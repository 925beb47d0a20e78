import type { Settings } from "./setting.ts";

/** The keys of one budget in `budgets`, of `fairQueue` or of a host. */
export const BUDGET_SETTINGS = {
  limit: { type: "number", unit: "count", above: 0 },
  perSeconds: { type: "number", unit: "seconds", above: 0 },
  burst: {
    type: "number",
    unit: "count",
    above: 0,
  },
  default: { type: "number", unit: "count", min: 0, default: 1 },
  shadow: { type: "flag", default: false },
} as const satisfies Settings;

/** The name of a budget, or of a key. */
export const NAME = /^[a-z][a-z0-9_-]{0,31}$/;

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

/** One budget of a configuration. */
export interface BudgetConfig {
  readonly limit: number;
  readonly perSeconds: number;
  readonly burst?: number | undefined;
  readonly default?: number | undefined;
  readonly shadow?: boolean | undefined;
}

/** Budgets of a configuration in the engine's units. Undefined: there are none. */
export function resolveBudgets(budgets: { readonly [name: string]: BudgetConfig } = {}): BudgetPolicies | undefined {
  const entries = Object.entries(budgets).map(([name, { limit, perSeconds, burst, default: cost, shadow }]) => [
    name,
    {
      limit,
      perMs: perSeconds * 1000,
      burst: burst ?? limit,
      default: cost ?? BUDGET_SETTINGS.default.default,
      ...(shadow === true ? { isShadow: true } : {}),
    },
  ]);
  return entries.length === 0 ? undefined : (Object.fromEntries(entries) as BudgetPolicies);
}

/** What is wrong with the budgets of a configuration, as a sentence each, with the path of the key. */
export function budgetProblems(budgets: unknown, path: string, most: number): string[] {
  if (!isRecord(budgets)) return [`Expected \`${path}\` to be an object of budgets, got ${JSON.stringify(budgets)}`];
  const names = Object.keys(budgets);
  const many = names.length > most ? [`Expected \`${path}\` to have at most ${most} budgets, got ${names.length}`] : [];
  return [
    ...many,
    ...Object.entries(budgets).flatMap(([name, budget]) => budgetProblem(name, budget, `${path}.${name}`)),
  ];
}

function budgetProblem(name: string, budget: unknown, path: string): string[] {
  const wrongName = NAME.test(name)
    ? []
    : [`Expected the name \`${path}\` to be 1 to 32 characters of a-z, 0-9, _ and -, and begin with one of a-z`];
  const {
    limit,
    perSeconds,
    burst = limit,
    default: cost = 1,
    shadow = false,
    ...unknown
  } = Object(budget) as { [key: string]: unknown };
  const expected = (field: string, text: string, value: unknown, isOk: boolean) =>
    isOk ? [] : [`Expected \`${path}.${field}\` to be ${text}, got ${JSON.stringify(value)}`];
  return [
    ...wrongName,
    ...Object.keys(unknown).map((key) => `Unknown key \`${path}.${key}\``),
    ...expected("limit", "a number above 0", limit, isAbove0(limit)),
    ...expected("perSeconds", "a number above 0", perSeconds, isAbove0(perSeconds)),
    ...expected("burst", "a number above 0", burst, isAbove0(burst)),
    ...expected(
      "default",
      "a number from 0 to `burst`",
      cost,
      Number.isFinite(cost) && (cost as number) >= 0 && !((cost as number) > (burst as number)),
    ),
    ...expected("shadow", "true or false", shadow, typeof shadow === "boolean"),
  ];
}

export function isRecord(value: unknown): value is { readonly [field: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isAbove0(value: unknown): boolean {
  return Number.isFinite(value) && (value as number) > 0;
}
