/**
 * Finds the number of slots that the upstream can take: increases it step by step, and decreases it after an overload.
 *
 * ADAPT1  Additive increase: after a window of as many answers as there are slots, the limit rises by one slot. It
 *     rises only if a caller had to wait for a slot during the window, because a limit that was not reached has not
 *     been tested. Below a number that was refused before, a quarter of a window is enough.
 * ADAPT2  Multiplicative decrease: an overload removes a tenth of the slots, at least one.
 * ADAPT3  One decrease for one overload: an overload answer to a request that was granted before the last decrease is
 *     ignored, because it says nothing about the current number of slots.
 * ADAPT4  A number of slots that was refused is tried again only after ten windows and `PATIENCE` answers without an
 *     overload. So probing costs about one refused request in `PATIENCE`, even for a small upstream. Plain additive
 *     increase pays one in a few windows: 1.3 to 1.5 % at 24 slots, and 5 % of the capacity (decision 0111).
 * ADAPT5  min ≤ limit ≤ max at all times.
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
  /** Increases with every decrease of the limit. */
  epoch = 0;
  #min: number;
  #max: number;
  /** The last number of slots at which the upstream reported an overload. */
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

  /** Handles the answer to a request that was granted in `epoch`. */
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
