/** The outcome of a real acquire, in the terms of the naive model. */
import { isSlotkeeperError, type Slot } from "slotkeeper";
import type { Fate } from "./naive-semaphore.ts";
import { Outcome } from "./outcome.ts";

const fateOfCode: Record<string, Fate> = { ACQUIRE_TIMEOUT: "timed out", CLOSED: "closed", QUEUE_FULL: "queue full" };

export const aborted = new Error("aborted by the test");

/** One acquire: its outcome, and whether its slot is still held. */
export class Attempt {
  readonly id: number;
  readonly #outcome: Outcome<Slot | undefined>;
  #releasedByUs = false;

  constructor(id: number, promise: Promise<Slot | undefined>, grants: number[]) {
    this.id = id;
    this.#outcome = new Outcome(promise, (slot) => {
      if (slot !== undefined) grants.push(id);
    });
  }

  get slot(): Slot | undefined {
    return this.#outcome.status === "fulfilled" ? this.#outcome.value : undefined;
  }

  get fate(): string {
    if (this.#outcome.status === "pending") return "waiting";
    if (this.#outcome.status === "fulfilled") return this.#fateOfSlot(this.#outcome.value);
    const { reason } = this.#outcome;
    if (reason === aborted) return "aborted";
    if (reason instanceof RangeError) return "too wide";
    return isSlotkeeperError(reason) ? (fateOfCode[reason.code] ?? reason.code) : String(reason);
  }

  release(): boolean | undefined {
    const released = this.slot?.release();
    if (released) this.#releasedByUs = true;
    return released;
  }

  /** For a slot that was not released by `release` of this class. */
  noteReleased(): void {
    this.#releasedByUs = true;
  }

  #fateOfSlot(slot: Slot | undefined): Fate {
    if (slot === undefined) return "never";
    if (!slot.released) return "held";
    return this.#releasedByUs ? "released" : "expired";
  }
}
