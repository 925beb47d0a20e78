import type { FairQueueConfig } from "@slotkeeper/protocol";
import { resolveOptions } from "@slotkeeper/queue";
import type { ClientPlan } from "../load/closed-loop.ts";
import { atLeastTimes, atMost, type Scenario, type SubjectId } from "../scenario.ts";
import { loadOf, s1 } from "./s1.ts";

/** Constraints of a host, and the fields of a request that meet them. They rarely make a client wait: the row shows costs. */
interface Constraint {
  readonly settings: object;
  readonly demandOf: (client: number) => object;
  readonly settled?: object;
}

const CONSTRAINTS: { readonly [name: string]: Constraint } = {
  budget: {
    settings: { budgets: { tokens: { limit: 1e9, perSeconds: 1 } } },
    demandOf: () => ({ cost: { tokens: 100 } }),
    settled: { used: { tokens: 90 } },
  },
  keys: {
    settings: { keys: { user: { slots: 2 }, tenant: { slots: 8 } } },
    demandOf: (client) => ({ keys: { user: `u${client % 32}`, tenant: `t${client % 4}` } }),
  },
  classes: {
    settings: { classes: { chat: { weight: 4 }, batch: { weight: 1 } } },
    // Each bucket has a client in either class.
    demandOf: (client) => ({ class: client < 32 ? "chat" : "batch" }),
  },
};

export const CONSTRAINT_NAMES: readonly string[] = Object.keys(CONSTRAINTS);

/** Those that this version has. */
export const BUILT_NAMES = CONSTRAINT_NAMES.filter((name) => isBuilt(constraintOf(name).settings));

export function isBuilt(settings: object): boolean {
  try {
    resolveOptions(settings);
    return true;
  } catch {
    return false;
  }
}

const PREFIX = "S1 with ";

/** The row S1 with these constraints, beside plain S1 (twice, for the noise of the machine), and beside an older version. */
export function s1With(names: readonly string[], hasOld: boolean): Scenario {
  const all = names.map(constraintOf);
  const kinds = ["again", "constrained", ...(hasOld ? ["old"] : [])] as const;
  const subjects = (["slotkeeper", "postgres"] as const).flatMap((store): SubjectId[] => [
    store,
    ...kinds.map((kind) => `${store}-${kind}` as SubjectId),
  ]);
  return {
    id: PREFIX + names.join(", "),
    title: s1.title,
    subjects,
    fairQueue: s1.fairQueue,
    constraints: Object.assign({}, ...all.map(({ settings }) => settings)) as FairQueueConfig,
    load: (context) => loadOf(context, context.subject.endsWith("-constrained") ? demandWith(all) : undefined),
    goals: (["slotkeeper", "postgres"] as const).flatMap((store) => [
      atLeastTimes(`${store}-constrained`, "cycles/s", 0.8, store),
      ...(hasOld ? [atLeastTimes(store, "cycles/s", 0.95, `${store}-old`)] : []),
      atMost(`${store}-constrained`, "violations", 0),
    ]),
  };
}

/** The scenario with this id, in a load process. */
export function s1WithBy(id: string): Scenario | undefined {
  return id.startsWith(PREFIX) ? s1With(id.slice(PREFIX.length).split(", "), false) : undefined;
}

const demandWith =
  (all: readonly Constraint[]) =>
  (client: number): Pick<ClientPlan, "demand" | "settled"> => ({
    demand: Object.assign({}, ...all.map(({ demandOf }) => demandOf(client))) as object,
    settled: Object.assign({}, ...all.map(({ settled }) => settled)) as object,
  });

function constraintOf(name: string): Constraint {
  const found = CONSTRAINTS[name];
  if (found !== undefined) return found;
  throw new RangeError(`Expected constraints of ${CONSTRAINT_NAMES.join(", ")}; got ${name}`);
}
