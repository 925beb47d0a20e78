import { BUCKET_KEY, classOf, type Demand, enforcedSlotsOf, widthOf } from "@slotkeeper/protocol";
import { accountsOf } from "../book/accounts.ts";
import type { Book } from "../book/book.ts";
import { classPolicy } from "../book/classes.ts";
import { valueOf } from "../book/key-line.ts";
import type { WaiterRecord } from "../book/records.ts";
import { bucketLimit, type HostPolicy } from "../host-policy.ts";
import type { Impossible } from "../inputs.ts";
import type { Deciding } from "./deciding.ts";
import { endWaiter } from "./ends.ts";

/** Requests that the limits of the host can never allow. */

type Asking = Pick<WaiterRecord, "bucket" | "demand">;

/** Why the limits can never allow the session. Undefined: they can. `slots`: of the host. */
export function impossible(book: Book, asking: Asking, slots: number): Impossible | undefined {
  return tooWide(book, asking, slots) ?? tooDear(book, asking);
}

function tooWide({ policy }: Book, asking: Asking, slots: number): Impossible | undefined {
  const value = widthOf(asking.demand);
  const most = bucketLimit(policy, asking.bucket);
  if (value > slots) return { field: "width", value, most: slots, limit: "the number of slots of the host" };
  if (value > most) return { field: "width", value, most, limit: "the most slots of one bucket" };
  for (const key of policy.keys ?? []) {
    const own = valueOf(key, asking);
    const ofKey = own === undefined ? Number.POSITIVE_INFINITY : enforcedSlotsOf(key, own);
    if (value > ofKey) return { field: "width", value, most: ofKey, limit: `the slots of \`keys.${key.name}\`` };
  }
  const name = classOf(asking.demand);
  const { ceiling = Number.POSITIVE_INFINITY } = classPolicy(policy, name);
  if (value <= ceiling) return undefined;
  return { field: "width", value, most: ceiling, limit: `the ceiling of \`classes.${name}\`` };
}

function tooDear({ policy, index }: Book, asking: Asking): Impossible | undefined {
  for (const { name, key, budget, amount: value } of accountsOf(policy, asking, index.refills)) {
    if (value <= budget.burst || budget.isShadow === true) continue;
    const limit = key === undefined ? "the burst of the budget" : `the burst of the budget of \`keys.${key}\``;
    return { field: `cost.${name}`, value, most: budget.burst, limit };
  }
  return undefined;
}

/** Call when the limits have changed: ends the waiters that they can never allow. */
export function endImpossible(deciding: Deciding): void {
  const { book } = deciding;
  for (const waiter of Array.from(book.all("waiter")))
    if (impossible(book, waiter, book.head.slots) !== undefined) endWaiter(deciding, waiter, "impossible");
}

/** A cost of a budget, a key or a class that the host does not have, or a key that it requires. */
export function unknownDemand(book: Book, demand: Demand | undefined): Impossible | undefined {
  const { policy } = book;
  const { keys: known = [] } = policy;
  if (demand === undefined && known.length === 0) return undefined;
  const { cost, keys = {}, class: named } = demand ?? {};
  const budget = cost && Object.keys(cost).find((one) => !hasBudget(policy, one));
  if (budget !== undefined) return absent(`cost.${budget}`, cost?.[budget], "budget", budgetNames(policy));
  const names = known.map(({ name }) => name).filter((name) => name !== BUCKET_KEY);
  const key = Object.keys(keys).find((one) => !names.includes(one));
  if (key !== undefined) return absent(`keys.${key}`, keys[key], "key", names);
  const { classes = {} } = policy;
  if (named !== undefined && !Object.hasOwn(classes, named))
    return absent("class", named, "class", Object.keys(classes));
  return lackedKey(book, demand);
}

/** A key that the host requires. */
export function lackedKey({ policy }: Book, { keys = {} }: Demand = {}): Impossible | undefined {
  const missing = policy.keys?.find(
    ({ name, isRequired, isShadow }) => isRequired === true && isShadow !== true && !Object.hasOwn(keys, name),
  );
  if (missing === undefined) return undefined;
  return { field: `keys.${missing.name}`, value: undefined, most: undefined, limit: "because the host requires it" };
}

/** Whether the host has a budget with this name. */
function hasBudget(policy: HostPolicy, name: string): boolean {
  for (const one of budgetNames(policy)) if (one === name) return true;
  return false;
}

/** The budgets of the host and of its keys. A name may come several times. */
function* budgetNames({ budgets = {}, keys = [] }: HostPolicy): Generator<string> {
  yield* Object.keys(budgets);
  for (const key of keys)
    for (const { budgets: own = {} } of [key, ...Object.values(key.for ?? {})]) yield* Object.keys(own);
}

function absent(field: string, value: number | string | undefined, what: string, names: Iterable<string>): Impossible {
  const known = [...new Set(names)].sort();
  return { field, value, most: undefined, limit: `because the host has no such ${what}`, known };
}
