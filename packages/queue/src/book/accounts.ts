import {
  amountOf,
  type BudgetPolicies,
  type BudgetPolicy,
  type Costs,
  type KeyPolicy,
  keyLimitsOf,
} from "@slotkeeper/protocol";
import type { HostPolicy } from "../host-policy.ts";
import { valueOf } from "./ladder.ts";
import type { WaiterRecord } from "./records.ts";

/**
 * The accounts that a request charges: a budget of the host, or of one value of a key. An account is named as its record:
 * `tokens` is a budget of the host, `tokens tenant acme` that of a value of a key, and `tokens tenant` the one that values
 * share while the host keeps too many (`sharesState`). Names of budgets and keys have no spaces.
 */

/** How many values of keys a host keeps the spent budgets of. Above it, further values share one state for each key. */
export const MOST_VALUES = 10_000;

/** A budget with what one request costs of it. */
export interface Account {
  readonly account: string;
  readonly amount: number;
}

/** The values of keys with a budget that is not full. */
interface KeptValues {
  readonly values: number;
  has(value: string): boolean;
}

type Asking = Pick<WaiterRecord, "bucket" | "demand">;

/** All accounts of a request. */
export function accountsOf(policy: HostPolicy, asking: Asking, kept: KeptValues): Account[] {
  const { budgets, keys } = policy;
  if (budgets === undefined && keys === undefined) return [];
  return [...accountsFor(budgets, "", asking), ...(keys ?? []).flatMap((key) => keyAccounts(key, asking, kept))];
}

/** The accounts of a request for one key. */
export function keyAccounts(key: KeyPolicy, asking: Asking, kept: KeptValues): Account[] {
  const value = valueOf(key, asking);
  if (value === undefined) return [];
  const isShared = sharesState(key, value, kept);
  return accountsFor(keyLimitsOf(key, value).budgets, isShared ? ` ${key.name}` : ` ${key.name} ${value}`, asking);
}

/** Values with limits of their own always have their own state: they are few. */
function sharesState({ name, for: own = {} }: KeyPolicy, value: string, kept: KeptValues): boolean {
  return kept.values >= MOST_VALUES && !Object.hasOwn(own, value) && !kept.has(`${name} ${value}`);
}

function accountsFor(budgets: BudgetPolicies = {}, suffix: string, { demand }: Asking): Account[] {
  return Object.entries(budgets).map(([name, budget]) => ({
    account: `${name}${suffix}`,
    amount: amountOf(demand?.cost, name) ?? budget.default,
  }));
}

/** The name of the budget. */
export function budgetOfAccount(account: string): string {
  return account.split(" ", 1)[0] as string;
}

/** The account as `blockedBy` names it. */
export function limitOfAccount(account: string): string {
  const [budget, key] = account.split(" ");
  return key === undefined ? `budget:${budget}` : `key:${key}`;
}

/** The value of a key that has this account, as `tenant acme`. Undefined: it is an account of the host, or shared. */
export function keyOfAccount(account: string): string | undefined {
  const key = account.slice(budgetOfAccount(account).length + 1);
  return key.includes(" ") ? key : undefined;
}

/** The keys whose shared state a grant was charged to. */
export function sharedKeysOf(costs: Costs): string[] {
  const shared = Object.keys(costs).filter((account) => account.split(" ").length === 2);
  return [...new Set(shared.map((account) => account.split(" ")[1] as string))];
}

/** The limits of an account. Undefined: the host does not have it any more. */
export function policyOfAccount({ budgets, keys }: HostPolicy, account: string): BudgetPolicy | undefined {
  const name = budgetOfAccount(account);
  if (name === account) return ownBudget(budgets, name);
  const [, keyName, ...value] = account.split(" ");
  const key = keys?.find((one) => one.name === keyName);
  return key && ownBudget(keyLimitsOf(key, value.join(" ")).budgets, name);
}

function ownBudget(budgets: BudgetPolicies | undefined, name: string): BudgetPolicy | undefined {
  return budgets !== undefined && Object.hasOwn(budgets, name) ? budgets[name] : undefined;
}
