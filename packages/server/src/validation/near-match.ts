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
    const edits = editsBetween(given, other);
    if (edits >= least) continue;
    least = edits;
    best = candidate;
  }
  return best;
}

const MOST_EDITS = 3;
/** A short word must match more closely: with three characters, almost any word would be near. */
const CHARACTERS_PER_EDIT = 3;

/** Characters added, left out, replaced, or swapped with their neighbour (optimal string alignment). */
function editsBetween(a: string, b: string): number {
  let before: number[] = [];
  let above = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const line = [row];
    for (let column = 1; column <= b.length; column++) {
      const isSame = a[row - 1] === b[column - 1];
      const isSwapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      line[column] = Math.min(
        (above[column] as number) + 1,
        (line[column - 1] as number) + 1,
        (above[column - 1] as number) + (isSame ? 0 : 1),
        isSwapped ? (before[column - 2] as number) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [before, above] = [above, line];
  }
  return above[b.length] as number;
}
