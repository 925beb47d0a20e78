import type { BudgetPolicies, KeyPolicy } from "@slotkeeper/protocol";
import { type HostPolicy, resolveHost, resolveOptions } from "@slotkeeper/queue";
import {
  accountsOf,
  budgetOfAccount,
  keyAccounts,
  keyOfAccount,
  limitOfAccount,
  MOST_VALUES,
  policyOfAccount,
  sharedKeysOf,
} from "@slotkeeper/queue/internals";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";

const PLAIN = resolveHost(resolveOptions({}), undefined).policy;
/** Names with two characters and more, and one of a method of every object. */
const BUDGETS = ["t", "tk", "tokens", "constructor"] as const;
const VALUES = ["acme", "a b", "tenant", " ", "x y z", "constructor"] as const;

const budget = fc.record({
  limit: fc.integer({ min: 1, max: 9 }),
  perMs: fc.constant(1_000),
  burst: fc.constant(20),
  default: fc.nat(3),
});
const budgets: fc.Arbitrary<BudgetPolicies> = fc.dictionary(fc.constantFrom(...BUDGETS), budget, {
  minKeys: 1,
  noNullPrototype: true,
});
const keyOf = (name: string): fc.Arbitrary<KeyPolicy> =>
  fc.record(
    {
      name: fc.constant(name),
      slots: fc.constant(2),
      budgets,
      for: fc.dictionary(fc.constantFrom(...VALUES), fc.record({ budgets }), { noNullPrototype: true }),
    },
    { requiredKeys: ["name"], noNullPrototype: true },
  );
const policyWith = fc
  .record(
    { budgets, keys: fc.tuple(keyOf("user"), keyOf("tenant"), keyOf("bucket")) },
    { requiredKeys: [], noNullPrototype: true },
  )
  .map((constraints): HostPolicy => ({ ...PLAIN, ...constraints }));

const demand = fc.record(
  {
    cost: fc.dictionary(fc.constantFrom(...BUDGETS), fc.nat(9), { noNullPrototype: true }),
    keys: fc.record(
      { user: fc.constantFrom(...VALUES), tenant: fc.constantFrom(...VALUES) },
      { requiredKeys: [], noNullPrototype: true },
    ),
  },
  { requiredKeys: [], noNullPrototype: true },
);
const asking = fc.record({ bucket: fc.constantFrom("", "b", "b c"), demand: fc.option(demand, { nil: undefined }) });
/** What the host keeps: many values or not, and these among them. */
const kept = fc.record({
  values: fc.constantFrom(0, MOST_VALUES - 1, MOST_VALUES, MOST_VALUES + 1),
  known: fc.subarray(["user acme", "user a b", "tenant acme", "tenant x y z", "bucket b c"]),
});

type Kept = { readonly values: number; readonly known: readonly string[] };
const keeping = ({ values, known }: Kept) => ({ values, has: (value: string) => known.includes(value) });
const nothingKept = keeping({ values: 0, known: [] });

/** The value of a request for a key, as the specification says. */
function valueFor(
  key: string,
  { bucket, demand: of }: { bucket: string; demand?: { keys?: { [name: string]: string } } | undefined },
) {
  if (key === "bucket") return bucket === "" ? undefined : bucket;
  return of?.keys?.[key];
}

/** The accounts of a request, by the names that the records of earlier versions have. */
function expected(policy: HostPolicy, ask: Parameters<typeof valueFor>[1] & { demand?: unknown }, of: Kept) {
  const costs = (ask.demand as { readonly cost?: Readonly<Record<string, number>> } | undefined)?.cost ?? {};
  const charge = (own: BudgetPolicies | undefined, suffix: string) =>
    Object.entries(own ?? {}).map(([name, one]): [string, number] => [
      name + suffix,
      Object.hasOwn(costs, name) ? (costs[name] as number) : one.default,
    ]);
  const ofKeys = (policy.keys ?? []).flatMap((key) => {
    const value = valueFor(key.name, ask);
    if (value === undefined) return [];
    const hasOwn = key.for !== undefined && Object.hasOwn(key.for, value);
    const shares = of.values >= MOST_VALUES && !hasOwn && !of.known.includes(`${key.name} ${value}`);
    const limits = hasOwn ? key.for?.[value]?.budgets : key.budgets;
    return charge(limits, shares ? ` ${key.name}` : ` ${key.name} ${value}`);
  });
  return [...charge(policy.budgets, ""), ...ofKeys];
}

describe("the accounts of a request", () => {
  test("are the budgets of its host and of its values, by name, with its costs or the defaults", () => {
    fc.assert(
      fc.property(policyWith, asking, kept, (policy, ask, of) => {
        const accounts = accountsOf(policy, ask, keeping(of));
        expect(accounts.map(({ account, amount }) => [account, amount])).toEqual(expected(policy, ask, of));
      }),
      { numRuns: 100 },
    );
  });

  test("have names from which their budget, their key, its value and their limits can be read again", () => {
    fc.assert(
      fc.property(policyWith, asking, kept, (policy, ask, of) => {
        const accounts = accountsOf(policy, ask, keeping(of));
        const shared = new Set<string>();
        for (const { account, name, key, budget: limits } of accounts) {
          expect(budgetOfAccount(account)).toBe(name);
          const value = key === undefined ? undefined : valueFor(key, ask);
          const isShared = key !== undefined && account === `${name} ${key}`;
          if (isShared) shared.add(key);
          expect(keyOfAccount(account)).toBe(key === undefined || isShared ? undefined : `${key} ${value}`);
          expect(policyOfAccount(policy, account)).toBe(limits);
        }
        const costs = Object.fromEntries(accounts.map(({ account, amount }) => [account, amount]));
        expect(sharedKeysOf(costs)).toEqual([...shared]);
      }),
      { numRuns: 100 },
    );
  });

  test("of one key are those of all its accounts that belong to the key", () => {
    fc.assert(
      fc.property(policyWith, asking, kept, (policy, ask, of) => {
        for (const key of policy.keys ?? []) {
          const all = accountsOf(policy, ask, keeping(of));
          expect(keyAccounts(key, ask, keeping(of))).toEqual(all.filter((one) => one.key === key.name));
        }
      }),
    );
  });

  test("of different values and of the host are never the same", () => {
    const each = { limit: 1, perMs: 1_000, burst: 1, default: 1 };
    const policy: HostPolicy = {
      ...PLAIN,
      budgets: { tokens: each },
      keys: [{ name: "tenant", budgets: { tokens: each } }],
    };
    const names = ["acme", "a", "a b", "tenant", "tokens", " a"].flatMap((tenant) =>
      accountsOf(policy, { bucket: "b", demand: { keys: { tenant } } }, nothingKept).map(({ account }) => account),
    );
    expect(new Set(names).size).toBe(7);
  });
});

describe("while a host keeps 10,000 values with spent budgets", () => {
  const TOKENS = { tokens: { limit: 10, perMs: 1_000, burst: 10, default: 1 } };
  const KEY: KeyPolicy = { name: "tenant", budgets: TOKENS, for: { own: { budgets: TOKENS } } };
  const nameFor = (tenant: string, of: Kept) =>
    keyAccounts(KEY, { bucket: "b", demand: { keys: { tenant } } }, keeping(of)).map(({ account }) => account);

  test.each([
    ["9,999", MOST_VALUES - 1, "tokens tenant new"],
    ["10,000", MOST_VALUES, "tokens tenant"],
    ["10,001", MOST_VALUES + 1, "tokens tenant"],
  ])("a new value beside %s others", (_, values, account) => {
    expect(MOST_VALUES).toBe(10_000);
    expect(nameFor("new", { values, known: [] })).toEqual([account]);
  });

  test("a value that is kept stays by itself, and so does one with limits of its own", () => {
    expect(nameFor("new", { values: MOST_VALUES, known: ["tenant new"] })).toEqual(["tokens tenant new"]);
    expect(nameFor("new", { values: MOST_VALUES, known: ["user new"] })).toEqual(["tokens tenant"]);
    expect(nameFor("own", { values: MOST_VALUES, known: [] })).toEqual(["tokens tenant own"]);
  });
});

describe("the limits of an account", () => {
  const [HOST, KEY, OWN] = [1, 2, 3].map((limit) => ({ limit, perMs: 1_000, burst: limit, default: 1 }));
  const policy = {
    ...PLAIN,
    budgets: { tokens: HOST },
    keys: [{ name: "tenant", budgets: { tokens: KEY }, for: { "a b": { budgets: { tokens: OWN } } } }],
  } as HostPolicy;

  test.each([
    ["tokens", HOST],
    ["tokens tenant acme", KEY],
    ["tokens tenant", KEY],
    ["tokens tenant a b", OWN],
    ["tokens tenant a", KEY],
    ["tokens tenant ab", KEY],
    ["coins", undefined],
    ["constructor", undefined],
    ["coins tenant acme", undefined],
    ["constructor tenant acme", undefined],
    ["tokens user ann", undefined],
  ])("%j are those of its budget, its key and its value", (account, limits) => {
    expect(policyOfAccount(policy, account)).toBe(limits);
  });

  test("are undefined at a host that has lost its budgets or keys", () => {
    expect(policyOfAccount(PLAIN, "tokens")).toBeUndefined();
    expect(policyOfAccount(PLAIN, "tokens tenant acme")).toBeUndefined();
  });

  test("are named to a waiter by the budget of the host, or by the key", () => {
    const accounts = accountsOf(policy, { bucket: "b", demand: { keys: { tenant: "acme" } } }, nothingKept);
    expect(accounts.map(limitOfAccount)).toEqual(["budget:tokens", "key:tenant"]);
  });
});
