/**
 * The candidate that was probably meant by `word`: only a few characters differ, ignoring case. `undefined` if none is
 * near.
 */
export function nearMatch(word: string, candidates: Iterable<string>): string | undefined {
  const given = word.toLowerCase();
  let best: string | undefined;
  let least = Math.min(MOST_EDITS, Math.floor(given.length / CHARACTERS_PER_EDIT)) + 1;
  for (const candidate of candidates) {
    const other = candidate.toLowerCase();
    if (Math.abs(other.length - given.length) >= least) continue;
    const edits = editsBetween(given, other, least);
    if (edits >= least) continue;
    least = edits;
    best = candidate;
  }
  return best;
}

const MOST_EDITS = 3;
/** A short word must match more closely: with three characters, almost any word would be near. */
const CHARACTERS_PER_EDIT = 3;

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
