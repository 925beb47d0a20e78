/**
 * Finds the word that was probably meant by another: a synonym, a longer or shorter form (`timeoutMs` for
 * `acquireTimeoutMs`), or a word that differs in a few characters. Case does not matter.
 */

/** Words that people try first, and ours for the same thing. */
const SYNONYMS: { readonly [word: string]: string } = {
  port: "listen",
  address: "listen",
  bind: "listen",
  key: "token",
  secret: "token",
  wait: "timeout",
};

const MOST_EDITS = 3;
/** A short word must match more closely: with three characters, almost any word would be near. */
const CHARACTERS_PER_EDIT = 3;
/** A part of a word must have this length: a shorter one is in many words. */
const SHORTEST_PART = 4;

/** The candidate that was probably meant by `word`; `undefined` if none is near. */
export function nearMatch(word: string, candidates: Iterable<string>): string | undefined {
  const given = word.toLowerCase();
  let best: string | undefined;
  let least = Math.min(MOST_EDITS, Math.floor(given.length / CHARACTERS_PER_EDIT)) + 1;
  for (const candidate of candidates) {
    const other = candidate.toLowerCase();
    if (Math.abs(other.length - given.length) >= least && !isForm(given, other)) continue;
    const distance = distanceBetween(given, other, Math.ceil(least));
    if (distance >= least) continue;
    least = distance;
    best = candidate;
  }
  return best;
}

/** All candidates, the one that was most probably meant first. */
export function nearestFirst(word: string, candidates: Iterable<string>): string[] {
  const given = word.toLowerCase();
  return Array.from(candidates, (candidate) => ({
    candidate,
    distance: distanceBetween(given, candidate.toLowerCase(), Number.POSITIVE_INFINITY),
  }))
    .sort((a, b) => a.distance - b.distance)
    .map(({ candidate }) => candidate);
}

/**
 * A part is nearer than two edits, and of several parts that with the fewest other characters is nearest. See
 * `editsBetween` for `most`.
 */
function distanceBetween(given: string, other: string, most: number): number {
  if (SYNONYMS[given] === other) return 0;
  if (!isForm(given, other)) return editsBetween(given, other, most);
  const added = Math.abs(given.length - other.length);
  return Math.min(added, 1.5 + added / 1000);
}

/** Whether they may mean the same although their lengths differ. */
function isForm(given: string, other: string): boolean {
  if (SYNONYMS[given] === other) return true;
  return Math.min(given.length, other.length) >= SHORTEST_PART && (other.includes(given) || given.includes(other));
}

/**
 * Characters added, left out, replaced, or swapped with their neighbour (optimal string alignment). If there are at
 * least `most`, some number from there on: only cells that fewer edits can reach are computed.
 */
function editsBetween(a: string, b: string, most: number): number {
  const far = Number.POSITIVE_INFINITY;
  let before: number[] = [];
  let above = Array.from({ length: b.length + 1 }, (_, column) => (column < most ? column : far));
  for (let row = 1; row <= a.length; row++) {
    const line: number[] = [];
    const [from, to] = [Math.max(1, row - most), Math.min(b.length, row + most)];
    line[from - 1] = from === 1 ? row : far;
    if (to < b.length) line[to + 1] = far;
    let least = line[from - 1] as number;
    for (let column = from; column <= to; column++) {
      const isSame = a[row - 1] === b[column - 1];
      const isSwapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      line[column] = Math.min(
        (above[column] as number) + 1,
        (line[column - 1] as number) + 1,
        (above[column - 1] as number) + (isSame ? 0 : 1),
        isSwapped ? (before[column - 2] as number) + 1 : far,
      );
      least = Math.min(least, line[column] as number);
    }
    if (least >= most) return least;
    [before, above] = [above, line];
  }
  return above[b.length] as number;
}
