/**
 * The source of the choices of a simulation. Both sources depend only on their arguments, so that a run can be
 * replayed. Neither is suitable for secrets.
 */
export interface ChoiceSource {
  /** Returns a number from 0 to `count - 1`. 0 is the choice of a run without a seed. */
  pick(count: number): number;
}

/** Pseudo-random choices from a seed (the "mulberry32" generator: 32 bits of state, full period). */
export class SeededChoices implements ChoiceSource {
  /** All choices so far that had more than one option. `ReplayedChoices` repeats the run from them. */
  readonly made: number[] = [];
  #state: number;

  constructor(seed: number) {
    // Mixes the upper half in, so that seeds that differ by a multiple of 2^32 give different runs.
    this.#state = (seed ^ Math.imul(Math.floor(seed / 0x1_0000_0000), 0x9e37_79b1)) | 0;
  }

  pick(count: number): number {
    if (count < 2) return 0;
    const choice = Math.floor(this.#next() * count);
    this.made.push(choice);
    return choice;
  }

  #next(): number {
    this.#state = (this.#state + 0x6d2b_79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000;
  }
}

/**
 * Repeats the choices of an earlier run, or a shortened list of them. After the end of the list, the first in the queue
 * runs.
 */
export class ReplayedChoices implements ChoiceSource {
  readonly #choices: readonly number[];
  #position = 0;

  constructor(choices: readonly number[]) {
    this.#choices = choices;
  }

  pick(count: number): number {
    if (count < 2) return 0;
    const choice = this.#choices[this.#position++] ?? 0;
    return Math.min(choice, count - 1);
  }
}
