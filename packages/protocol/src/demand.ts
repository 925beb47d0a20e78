import { DEFAULT_CLASS } from "./settings/class-settings.ts";

/** Amounts by the names of budgets. */
export type Costs = { readonly [budget: string]: number };

/** The values of a request for the keys of a host, by the name of the key. */
export type KeyValues = { readonly [key: string]: string };

/**
 * What a request asks for besides its place in the queue. It goes unchanged from the first call into the token of the
 * session, the waiter and the decision. Most requests ask for nothing special: they have no demand at all.
 */
export interface Demand {
  /** How many slots the session needs. They are granted together. Absent: 1. */
  readonly width?: number | undefined;
  /** What the request costs, by the name of the budget. A budget that is not named costs its default. */
  readonly cost?: Costs | undefined;
  /** Whose limits apply besides those of the host and the bucket: the values of the host's keys. */
  readonly keys?: KeyValues | undefined;
  /** The class of the request. Absent: `DEFAULT_CLASS`. */
  readonly class?: string | undefined;
}

/** The demand of a first call, in the one form in which it is kept. Undefined: one slot, and nothing special. */
export function demandOf({ width = 1, cost, keys, class: named }: Demand): Demand | undefined {
  const given = keys === undefined || isEmpty(keys) ? undefined : withoutEmpty(keys);
  const isNamed = named !== undefined && named !== "" && named !== DEFAULT_CLASS;
  if (width === 1 && isEmpty(cost) && given === undefined && !isNamed) return undefined;
  return {
    ...(width === 1 ? undefined : { width }),
    ...(isEmpty(cost) ? undefined : { cost }),
    ...(given === undefined ? undefined : { keys: given }),
    ...(isNamed ? { class: named } : undefined),
  };
}

/** An empty value is none. Undefined: nothing is left. */
function withoutEmpty(keys: KeyValues): KeyValues | undefined {
  if (!Object.values(keys).includes("")) return keys;
  const given = Object.entries(keys).filter(([, value]) => value !== "");
  return given.length === 0 ? undefined : Object.fromEntries(given);
}

/** The amount for a budget, which may have the name of a method of every object. Undefined: it is not named. */
export function amountOf(costs: Costs | undefined, budget: string): number | undefined {
  return costs !== undefined && Object.hasOwn(costs, budget) ? costs[budget] : undefined;
}

/** How many slots the demand needs. */
export function widthOf(demand: Demand | undefined): number {
  return demand?.width ?? 1;
}

/** The class of the demand. */
export function classOf(demand: Demand | undefined): string {
  return demand?.class ?? DEFAULT_CLASS;
}

/** A field in which the demand of a session and a later one differ. Undefined: the demand does not have the field. */
export interface DemandDifference {
  readonly field: string;
  readonly held: number | string | undefined;
  readonly given: number | string | undefined;
}

/** The first difference of two demands in their kept form. Undefined: they ask for the same. */
export function differenceOf(held: Demand | undefined, given: Demand | undefined): DemandDifference | undefined {
  if (held === given) return undefined;
  if (widthOf(held) !== widthOf(given)) return { field: "width", held: widthOf(held), given: widthOf(given) };
  if (classOf(held) !== classOf(given)) return { field: "class", held: classOf(held), given: classOf(given) };
  return differenceIn("cost", held?.cost, given?.cost) ?? differenceIn("keys", held?.keys, given?.keys);
}

type Named = { readonly [name: string]: number | string };

/** The order of the names does not count. */
function differenceIn(field: "cost" | "keys", held: Named = {}, given: Named = {}): DemandDifference | undefined {
  const of = (map: Named, name: string) => (Object.hasOwn(map, name) ? map[name] : undefined);
  const isOther = (name: string) => of(held, name) !== of(given, name);
  const other = Object.keys(held).find(isOther) ?? Object.keys(given).find(isOther);
  if (other === undefined) return undefined;
  return { field: `${field}.${other}`, held: of(held, other), given: of(given, other) };
}

function isEmpty(map: object | undefined): boolean {
  return map === undefined || Object.keys(map).length === 0;
}
