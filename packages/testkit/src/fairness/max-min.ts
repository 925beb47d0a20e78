/** One user of a shared resource. */
export interface Claim {
  readonly weight: number;
  /** The largest amount that it could use, in the unit of the capacity. */
  readonly demand: number;
}

/**
 * Weighted max-min fair allocation, by progressive filling: every group grows at the rate of its weight. A group that
 * has its demand stops, and the others share the rest. No claim can get more without taking from one that has the same
 * or less per weight.
 */
export function maxMin(capacity: number, claims: readonly Claim[]): number[] {
  const shares = claims.map(() => 0);
  let open = claims.map((_, index) => index);
  let left = capacity;
  while (open.length > 0 && left > 1e-12) {
    const weight = open.reduce((sum, index) => sum + (claims[index] as Claim).weight, 0);
    const level = left / weight;
    const filled = open.filter(
      (index) => wants(claims[index] as Claim, shares[index] as number) <= level * weightOf(claims, index),
    );
    for (const index of filled.length > 0 ? filled : open) {
      const claim = claims[index] as Claim;
      const more = filled.length > 0 ? wants(claim, shares[index] as number) : level * claim.weight;
      shares[index] = (shares[index] as number) + more;
      left -= more;
    }
    if (filled.length === 0) break;
    open = open.filter((index) => !filled.includes(index));
  }
  return shares;
}

function wants({ demand }: Claim, share: number): number {
  return demand - share;
}

function weightOf(claims: readonly Claim[], index: number): number {
  return (claims[index] as Claim).weight;
}
