import {
  amountOf,
  type BudgetPolicies,
  type BudgetPolicy,
  type Costs,
  type KeyPolicy,
  keyLimitsOf,
} from "@slotkeeper/protocol";
import type { HostPolicy } from "../host-policy.ts";
import { valueOf } from "./key-line.ts";
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
  /** The key of its record. */
  readonly account: string;
  /** The name of the budget. */
  readonly name: string;
  /** The name of the key. Undefined: it is a budget of the host. */
  readonly key: string | undefined;
  readonly budget: BudgetPolicy;
  readonly amount: number;
}

const NO_ACCOUNTS: readonly Account[] = [];

/** The values of keys with a budget that is not full. */
interface KeptValues {
  readonly values: number;
  has(value: string): boolean;
}

type Asking = Pick<WaiterRecord, "bucket" | "demand">;

/** All accounts of a request. */
export function accountsOf(policy: HostPolicy, asking: Asking, kept: KeptValues): readonly Account[] {
  const { budgets, keys } = policy;
  const own = budgets === undefined ? NO_ACCOUNTS : accountsFor(budgets, undefined, "", asking);
  if (keys === undefined) return own;
  return keys.reduce((all, key) => joined(all, keyAccounts(key, asking, kept)), own);
}

/** The accounts of a request for one key. */
export function keyAccounts(key: KeyPolicy, asking: Asking, kept: KeptValues): readonly Account[] {
  const value = valueOf(key, asking);
  const { budgets } = value === undefined ? {} : keyLimitsOf(key, value);
  if (value === undefined || budgets === undefined) return NO_ACCOUNTS;
  const isShared = sharesState(key, value, kept);
  return accountsFor(budgets, key.name, isShared ? ` ${key.name}` : ` ${key.name} ${value}`, asking);
}

function joined(a: readonly Account[], b: readonly Account[]): readonly Account[] {
  if (b.length === 0) return a;
  return a.length === 0 ? b : [...a, ...b];
}

/** Values with limits of their own always have their own state: they are few. */
function sharesState({ name, for: own = {} }: KeyPolicy, value: string, kept: KeptValues): boolean {
  return kept.values >= MOST_VALUES && !Object.hasOwn(own, value) && !kept.has(`${name} ${value}`);
}

function accountsFor(
  budgets: BudgetPolicies,
  key: string | undefined,
  suffix: string,
  { demand }: Asking,
): readonly Account[] {
  return Object.entries(budgets).map(([name, budget]) => {
    const amount = amountOf(demand?.cost, name) ?? budget.default;
    return { account: suffix === "" ? name : name + suffix, name, key, budget, amount };
  });
}

/** The name of the budget. */
export function budgetOfAccount(account: string): string {
  const end = account.indexOf(" ");
  return end < 0 ? account : account.slice(0, end);
}

/** The account as `blockedBy` names it. */
export function limitOfAccount({ name, key }: Account): string {
  return key === undefined ? `budget:${name}` : `key:${key}`;
}

/** The value of a key that has this account, as `tenant acme`. Undefined: it is an account of the host, or shared. */
export function keyOfAccount(account: string): string | undefined {
  const start = account.indexOf(" ") + 1;
  return start > 0 && account.includes(" ", start) ? account.slice(start) : undefined;
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
