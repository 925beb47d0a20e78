/** Amounts by the names of budgets. */
export type Costs = { readonly [budget: string]: number };

/**
 * What a request asks for besides its place in the queue. It goes unchanged from the first call into the token of the
 * session, the waiter and the decision. Most requests ask for nothing special: they have no demand at all.
 */
export interface Demand {
  /** How many slots the session needs. They are granted together. Absent: 1. */
  readonly width?: number | undefined;
  /** What the request costs, by the name of the budget. A budget that is not named costs its default. */
  readonly cost?: Costs | undefined;
}

/** The demand of a first call, in the one form in which it is kept. Undefined: one slot, and nothing special. */
export function demandOf({ width = 1, cost }: Demand): Demand | undefined {
  if (width === 1 && isEmpty(cost)) return undefined;
  return { ...(width === 1 ? {} : { width }), ...(isEmpty(cost) ? {} : { cost }) };
}

/** How many slots the demand needs. */
export function widthOf(demand: Demand | undefined): number {
  return demand?.width ?? 1;
}

/** Whether two demands in their kept form ask for the same. */
export function isSameDemand(a: Demand | undefined, b: Demand | undefined): boolean {
  return a === b || (widthOf(a) === widthOf(b) && isSameMap(a?.cost, b?.cost));
}

/** Whether two objects have the same entries, whatever their order. */
function isSameMap<T>(a: { readonly [name: string]: T } = {}, b: { readonly [name: string]: T } = {}): boolean {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name]);
}

function isEmpty(map: object | undefined): boolean {
  return map === undefined || Object.keys(map).length === 0;
}
