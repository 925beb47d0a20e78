/** The figures of one moment, by name. */
export interface Sample {
  readonly atSeconds: number;
  readonly figures: Readonly<Record<string, number>>;
}

export interface SoakVerdict {
  /** What grew, as sentences. Empty: passed. */
  readonly misses: readonly string[];
  /** After warming up, and at the end: medians of a fifth of the samples each. */
  readonly grown: Readonly<Record<string, { readonly from: number; readonly to: number }>>;
}

/** How much larger a figure may be at the end: a part, and a number for small figures that come and go with the load. */
const BOUNDS: readonly (readonly [name: RegExp, part: number, more: number])[] = [
  [/^memory/, 0.05, 0],
  [/^open files/, 0, 60],
  [/^rows/, 0.1, 200],
  [/^journal/, 0, 6],
];

/** Compares the samples after warming up with those at the end. Medians, because a collection of garbage moves a single one. */
export function judge(samples: readonly Sample[], warmUpSeconds: number): SoakVerdict {
  const warm = samples.filter(({ atSeconds }) => atSeconds >= warmUpSeconds);
  if (warm.length < 4)
    return { misses: [`Expected at least 4 samples after warming up, got ${warm.length}`], grown: {} };
  const some = Math.max(2, Math.floor(warm.length / 5));
  const grown: Record<string, { from: number; to: number }> = {};
  const misses: string[] = [];
  for (const name of Object.keys(warm[0]?.figures ?? {})) {
    const values = warm.map(({ figures }) => figures[name] ?? 0);
    const [from, to] = [median(values.slice(0, some)), median(values.slice(-some))];
    grown[name] = { from, to };
    const [, part, more] = BOUNDS.find(([pattern]) => pattern.test(name)) ?? [/$/, 0.05, 0];
    if (to > from * (1 + part) + more) misses.push(`${name} grew from ${round(from)} to ${round(to)}`);
  }
  return { misses, grown };
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? (sorted[middle] ?? 0) : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2;
}

const round = (value: number): string => (value < 10 ? value.toFixed(2) : String(Math.round(value)));
