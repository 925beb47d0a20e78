/**
 * Makes a failing list of choices smaller. First it cuts off the end. Then it replaces parts of the list by 0 ("the
 * first in the queue", the choice of a run without a seed): halves, quarters, and so on down to single choices. A
 * candidate is kept if it still fails in the same way and is better: it has a shorter log, otherwise fewer choices that
 * are not 0, otherwise a shorter list. The result is the best one found within the budget of runs, not a proven
 * minimum.
 */
export interface Candidate {
  readonly choices: readonly number[];
  readonly logLength: number;
}

/**
 * A search that yields the choices to try. Its driver answers with the failing run, or `undefined` if the run did not
 * fail.
 */
export type Shrinking<C extends Candidate> = Generator<readonly number[], C, C | undefined>;

export function* shrink<C extends Candidate>(start: C, budget: number): Shrinking<C> {
  let best = start;
  let left = budget;
  for (let improved = true; improved && left > 0; ) {
    improved = false;
    for (const choices of simplerThan(best.choices)) {
      if (left-- <= 0) break;
      const found = yield choices;
      if (found === undefined || !isBetter(found, best)) continue;
      best = found;
      improved = true;
      break;
    }
  }
  return best;
}

function* simplerThan(choices: readonly number[]): Generator<readonly number[], void, undefined> {
  for (let size = choices.length; size >= 1; size = Math.floor(size / 2)) {
    if (size < choices.length) yield withoutTail(choices.slice(0, choices.length - size));
    for (let from = 0; from < choices.length; from += size) {
      if (choices.slice(from, from + size).some((choice) => choice !== 0)) {
        yield withoutTail(choices.map((choice, at) => (at >= from && at < from + size ? 0 : choice)));
      }
    }
  }
}

/** Removes zeros at the end. They have no effect, because every choice after the end of the list is 0. */
export function withoutTail(choices: readonly number[]): readonly number[] {
  return choices.slice(0, choices.findLastIndex((choice) => choice !== 0) + 1);
}

export function isBetter(a: Candidate, b: Candidate): boolean {
  return compare(a, b) < 0;
}

function compare(a: Candidate, b: Candidate): number {
  const real = (candidate: Candidate): number => candidate.choices.filter((choice) => choice !== 0).length;
  return a.logLength - b.logLength || real(a) - real(b) || a.choices.length - b.choices.length;
}
