/** One user of several resources at once. */
export interface VectorClaim {
  /** How fast its share grows compared with the others. */
  readonly rate: number;
  /** The largest share that it could use. */
  readonly demand: number;
}

/** A resource: how much there is, and how much of it each claim needs for one unit of its share. */
export interface Resource {
  readonly capacity: number;
  readonly needs: readonly number[];
}

/**
 * Max-min fair shares of several resources, by progressive filling: all shares grow at their rates. When a resource is used
 * up, the claims that need it stop; so does a claim that has its demand. `maxMin` is the case of one resource.
 */
export function vectorMaxMin(claims: readonly VectorClaim[], resources: readonly Resource[]): number[] {
  const shares = claims.map(() => 0);
  let open = claims.map((_, at) => at);
  while (open.length > 0) {
    const step = Math.min(
      ...open.map((at) => ((claims[at]?.demand ?? 0) - (shares[at] ?? 0)) / rateOf(claims, at)),
      ...resources.map((resource) => growth(resource, shares, claims, open)),
    );
    for (const at of open) shares[at] = (shares[at] ?? 0) + step * rateOf(claims, at);
    const usedUp = resources.filter((resource) => left(resource, shares) <= TINY * resource.capacity);
    const next = open.filter(
      (at) =>
        (claims[at]?.demand ?? 0) - (shares[at] ?? 0) > TINY && usedUp.every(({ needs }) => (needs[at] ?? 0) === 0),
    );
    if (next.length === open.length) throw new Error("Expected a resource or a demand that ends the growth");
    open = next;
  }
  return shares;
}

const TINY = 1e-9;

function rateOf(claims: readonly VectorClaim[], at: number): number {
  return claims[at]?.rate ?? 0;
}

function left({ capacity, needs }: Resource, shares: readonly number[]): number {
  return capacity - shares.reduce((sum, share, at) => sum + share * (needs[at] ?? 0), 0);
}

/** By how much the open claims can grow until the resource is used up. */
function growth(
  resource: Resource,
  shares: readonly number[],
  claims: readonly VectorClaim[],
  open: readonly number[],
) {
  const needed = open.reduce((sum, at) => sum + rateOf(claims, at) * (resource.needs[at] ?? 0), 0);
  return needed === 0 ? Number.POSITIVE_INFINITY : left(resource, shares) / needed;
}
