import type { Dispatcher } from "./dispatcher.ts";
import { DEAD, DESK, type Memory } from "./memory.ts";

/** How many rounds in a row one thread serves before it passes the desk on, so that its event loop is not blocked. */
const MAX_ROUNDS = 64;
const BELL = 1;

/**
 * The desk: one thread at a time serves the queue, and no thread waits for its turn to serve.
 *
 * | desk           | means                             | `call` by another thread                              |
 * |----------------|-----------------------------------|-------------------------------------------------------|
 * | 0              | no thread serves                  | takes it and serves                                   |
 * | owner          | being served                      | rings the bell and leaves: another round will follow  |
 * | owner + bell   | will be served once more          | leaves at once                                        |
 * | dead owner     | a worker ended at the desk        | takes it over, repairs, serves                        |
 *
 * DESK1 (one at a time) Only the thread whose number is in the word runs a round.
 * DESK2 (no lost call) A round that begins after a `call` sees everything that was written before the `call`. It is a
 *     round of the caller or the next round of the owner, because the owner cannot leave while the bell is rung.
 * DESK3 (bounded) After 64 rounds in a row, the owner leaves the rest to a waiting thread and wakes it by a change of
 *     its state word. So no thread stays at the desk while others keep it busy.
 */
export class Desk {
  readonly #memory: Memory;
  readonly #owner: number;
  readonly #dispatcher: Dispatcher;
  readonly #maxRounds: number;

  constructor(memory: Memory, owner: number, dispatcher: Dispatcher, maxRounds = MAX_ROUNDS) {
    this.#memory = memory;
    this.#owner = owner << 1;
    this.#dispatcher = dispatcher;
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
      this.#dispatcher.repair();
      return this.#serve();
    }
    return (seen & BELL) !== 0 || memory.swap(DESK, seen, seen | BELL);
  }

  /** Returns false if work is left and no thread was found to do it. */
  #serve(): boolean {
    const memory = this.#memory;
    for (let rounds = 1; ; rounds++) {
      this.#dispatcher.round();
      if (memory.swap(DESK, this.#owner, 0)) return true;
      if (rounds >= this.#maxRounds) return this.#passOn();
      memory.store(DESK, this.#owner);
    }
  }

  /** Leaves the desk first. Otherwise the nudged thread would find the bell rung already and leave. */
  #passOn(): boolean {
    const cell = this.#dispatcher.first();
    this.#memory.store(DESK, 0);
    return cell !== 0 && this.#dispatcher.nudge(cell);
  }
}
