import { DEAD, DESK, type Memory } from "./memory.ts";

/** How often one thread serves the others in a row before it passes the desk on, so that no event loop is captured. */
const MAX_ROUNDS = 64;
const BELL = 1;

export interface Service {
  /** One pass over everything that is to be done. Must see all that was written before it began. */
  round(): void;
  /** Puts right what an owner who died in the middle of a round left half done. */
  repair(): void;
  /** The first in the queue, or 0. */
  first(): number;
  /** Asks the thread that waits in this cell to call; false if it does not wait any more. May be called without the desk. */
  nudge(cell: number): boolean;
}

/**
 * The desk: one thread at a time serves the queue, and no thread ever waits for it.
 *
 * | desk           | means                             | `call` by another thread                              |
 * |----------------|-----------------------------------|-------------------------------------------------------|
 * | 0              | no thread serves                  | takes it and serves                                   |
 * | owner          | being served                      | rings the bell and goes: the owner does another round |
 * | owner + bell   | will be served once more          | goes at once                                          |
 * | dead owner     | a worker was terminated in there  | takes it over, repairs, serves                        |
 *
 * DESK1 (one at a time) Only the thread whose number is in the word runs a round.
 * DESK2 (nothing is forgotten) What was written before `call` is seen by a round that begins after it: either the caller's
 *    own, or the owner's next, since the owner cannot leave while the bell is rung.
 * DESK3 (bounded) After 64 rounds in a row the owner leaves the rest to a waiting thread, woken by a change of its state
 *    word: no thread is captured at the desk while others keep it busy.
 */
export class Desk {
  readonly #memory: Memory;
  readonly #owner: number;
  readonly #service: Service;
  readonly #maxRounds: number;

  constructor(memory: Memory, owner: number, service: Service, maxRounds = MAX_ROUNDS) {
    this.#memory = memory;
    this.#owner = owner << 1;
    this.#service = service;
    this.#maxRounds = maxRounds;
  }

  call(): void {
    while (!this.#isDone());
  }

  #isDone(): boolean {
    const memory = this.#memory;
    const seen = memory.load(DESK);
    if (seen === 0) return memory.swap(DESK, 0, this.#owner) && this.#serve();
    if (memory.load(memory.thread(seen >> 1)) === DEAD) {
      if (!memory.swap(DESK, seen, this.#owner)) return false;
      this.#service.repair();
      return this.#serve();
    }
    return (seen & BELL) !== 0 || memory.swap(DESK, seen, seen | BELL);
  }

  /** False if there is still something to do and no thread was found to do it. */
  #serve(): boolean {
    const memory = this.#memory;
    for (let rounds = 1; ; rounds++) {
      this.#service.round();
      if (memory.swap(DESK, this.#owner, 0)) return true;
      if (rounds >= this.#maxRounds) return this.#passOn();
      memory.store(DESK, this.#owner);
    }
  }

  /** Leaves first: the nudged thread would find the bell rung already, and go. */
  #passOn(): boolean {
    const cell = this.#service.first();
    this.#memory.store(DESK, 0);
    return cell !== 0 && this.#service.nudge(cell);
  }
}
