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

/** Whether two demands in their kept form ask for the same. */
export function isSameDemand(a: Demand | undefined, b: Demand | undefined): boolean {
  if (a === b) return true;
  if (widthOf(a) !== widthOf(b) || classOf(a) !== classOf(b)) return false;
  return isSameMap(a?.cost, b?.cost) && isSameMap(a?.keys, b?.keys);
}

/** Whether two objects have the same entries, whatever their order. */
function isSameMap<T>(a: { readonly [name: string]: T } = {}, b: { readonly [name: string]: T } = {}): boolean {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name]);
}

function isEmpty(map: object | undefined): boolean {
  return map === undefined || Object.keys(map).length === 0;
}
