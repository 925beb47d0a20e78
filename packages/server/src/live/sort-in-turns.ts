import { nextTurn } from "../next-turn.ts";

/** How many names are sorted or merged in one turn of the event loop: some milliseconds. */
const NAMES_PER_TURN = 4_000;

/** The different names, sorted. A hundred thousand take longer than other requests may wait, so it goes by turns. */
export async function sortInTurns(names: readonly string[]): Promise<readonly string[]> {
  let runs: (readonly string[])[] = [];
  for (let at = 0; at < names.length; at += NAMES_PER_TURN) {
    if (at > 0) await nextTurn();
    runs.push(names.slice(at, at + NAMES_PER_TURN).sort());
  }
  while (runs.length > 1) {
    const merged: (readonly string[])[] = [];
    for (let at = 0; at < runs.length; at += 2) merged.push(await merge(runs[at] ?? [], runs[at + 1] ?? []));
    runs = merged;
  }
  return (runs[0] ?? []).filter((name, at, all) => name !== all[at - 1]);
}

async function merge(left: readonly string[], right: readonly string[]): Promise<readonly string[]> {
  if (right.length === 0) return left;
  const merged: string[] = [];
  for (let [at, other] = [0, 0]; at < left.length || other < right.length; ) {
    const [one, two] = [left[at], right[other]];
    const isLeft = two === undefined || (one !== undefined && one <= two);
    if (isLeft) at++;
    else other++;
    merged.push((isLeft ? one : two) as string);
    if (merged.length % NAMES_PER_TURN === 0) await nextTurn();
  }
  return merged;
}
