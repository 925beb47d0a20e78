import { type Book, type DecideContext, type Decision, decide, type Input } from "@slotkeeper/queue/internals";
import { compareHistory, memoryHost, randomHistory } from "@slotkeeper/testkit/reference";
import { expect, test } from "vitest";

type Policy = DecideContext["limits"]["policy"];
type Classes = NonNullable<Policy["classes"]>;

/** How many histories a planted bug gets. */
const HISTORIES = 3_000;

/** The engine decides with other classes than the limits say. */
function withClasses(changed: (one: Classes[string], policy: Policy) => Classes[string]): typeof decide {
  return (book, inputs, context) => {
    const { limits } = context;
    const { policy } = limits;
    if (policy.classes === undefined) return decide(book, inputs, context);
    const all = Object.entries(policy.classes).map(([name, one]) => [name, changed(one, policy)] as const);
    return decide(book, inputs, {
      ...context,
      limits: { ...limits, policy: { ...policy, classes: Object.fromEntries(all) } },
    });
  };
}

function hasBudgets({ budgets = {} }: Policy): boolean {
  return Object.values(budgets).some(({ isShadow }) => isShadow !== true);
}

/** A class that becomes active starts at zero, not at the meter of the host. */
function startingBelow(book: Book, inputs: readonly Input[], context: DecideContext): Decision {
  const idle = (name: string) => book.index.ofClass(name)?.ledger.isActive !== true;
  const before = new Set(book.index.classes.map(({ name }) => name).filter((name) => !idle(name)));
  const decision = decide(book, inputs, context);
  const returned = Object.entries(book.head.classes ?? {}).filter(([name]) => !before.has(name) && !idle(name));
  if (returned.length > 0) {
    const uses = returned.map(([name, use]) => [name, { ...use, usedMs: 0 }]);
    book.draft.classes = { ...book.head.classes, ...Object.fromEntries(uses) };
  }
  return decision;
}

const BUGS: readonly { readonly name: string; readonly decideOn: typeof decide }[] = [
  { name: "ceilings are ignored", decideOn: withClasses(({ weight, floor }) => ({ weight, floor })) },
  { name: "floors are ignored", decideOn: withClasses((one) => ({ ...one, floor: 0 })) },
  { name: "weights are ignored", decideOn: withClasses((one) => ({ ...one, weight: 1 })) },
  {
    name: "a class with a floor always goes first while a budget is short",
    decideOn: withClasses((one, policy) => (hasBudgets(policy) && one.floor > 0 ? { ...one, weight: 1e6 } : one)),
  },
  { name: "a class that returns starts below the meter, and gets every grant", decideOn: startingBelow },
];

test.each(BUGS)(
  "the comparison with the reference book finds that $name",
  { timeout: 600_000 },
  async ({ decideOn }) => {
    let found: number | undefined;
    for (let seed = 1; seed <= HISTORIES && found === undefined; seed++) {
      const history = randomHistory(seed);
      if (history.configs[0].hosts?.["*"]?.classes === undefined) continue;
      if ((await compareHistory(history, memoryHost(decideOn))) !== undefined) found = seed;
    }
    expect(found).toBeDefined();
  },
);
