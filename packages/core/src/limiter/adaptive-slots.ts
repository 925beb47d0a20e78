/**
 * How many slots the upstream can take, found by trying.
 *
 * ADAPT1  Additive up: after a window of as many answers as there are slots, one slot more; but only if a caller had to wait
 *     for a slot meanwhile, since a limit that was not reached has not been tried. Below a number that was refused the
 *     ground is known, and a quarter of a window is enough.
 * ADAPT2  Multiplicative down: an overload takes a tenth of the slots, at least one.
 * ADAPT3  At most one step down for the requests of one time: an overload answer to a request that was granted before the
 *     last step down says nothing about the slots of now.
 * ADAPT4  A number of slots that was refused is tried again only after ten windows, and `PATIENCE` answers, without an
 *     overload. So probing costs about one refused request in `PATIENCE`, however small the upstream is. Plain additive
 *     increase pays one in a few windows: 1.3 to 1.5 % at 24 slots, and 5 % of the capacity (decision 0111).
 * ADAPT5  min ≤ limit ≤ max, always.
 */
const KEPT_SHARE = 0.9;
const PATIENCE = 250;
const PATIENT_WINDOWS = 10;
const KNOWN_GROUND = 0.25;

export interface AdaptiveLimits {
  readonly min: number;
  readonly start: number;
}

export class AdaptiveSlots {
  limit: number;
  /** Grows with every step down. */
  epoch = 0;
  #min: number;
  #max: number;
  /** The number of slots that was refused last. */
  #refused = Infinity;
  #answers = 0;
  #answersSinceOverload = 0;
  #wasBinding = false;

  constructor({ min, start }: AdaptiveLimits, max: number) {
    this.#min = min;
    this.#max = max;
    this.limit = Math.min(start, max);
  }

  /** A caller has to wait for a slot. */
  bind(): void {
    this.#wasBinding = true;
  }

  resize(max: number): void {
    this.#max = max;
    this.#min = Math.min(this.#min, max);
    this.limit = Math.min(this.limit, max);
  }

  /** The answer to a request that was granted in that epoch. */
  answer(isOverload: boolean, epoch: number): void {
    if (!isOverload) return this.#wentWell();
    this.#answersSinceOverload = 0;
    if (epoch < this.epoch) return;
    this.#refused = this.limit;
    this.#changeTo(Math.max(this.#min, Math.min(this.limit - 1, Math.floor(this.limit * KEPT_SHARE))));
    this.epoch++;
  }

  #wentWell(): void {
    this.#answers++;
    this.#answersSinceOverload++;
    const isKnown = this.limit + 1 < this.#refused && this.#refused < Infinity;
    if (this.#answers < this.limit * (isKnown ? KNOWN_GROUND : 1)) return;
    if (!this.#wasBinding || this.limit >= this.#max) return this.#changeTo(this.limit);
    if (this.limit + 1 >= this.#refused) {
      if (this.#answersSinceOverload < Math.max(PATIENCE, this.limit * PATIENT_WINDOWS)) return;
      this.#refused = Infinity;
    }
    this.#changeTo(this.limit + 1);
  }

  #changeTo(limit: number): void {
    this.limit = limit;
    this.#answers = 0;
    this.#wasBinding = false;
  }
}
