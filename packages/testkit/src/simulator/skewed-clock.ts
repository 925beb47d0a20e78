import type { Clock } from "slotkeeper";
import { Gate } from "./gate.ts";

/**
 * The clock of one machine: it is wrong by some amount, may jump, and its timers fire only while its process runs. It
 * is for tests in which machines disagree about the time or stand still. It wraps the `VirtualClock` of the test; other
 * tests use that one alone.
 */
export class SkewedClock implements Clock {
  readonly #world: Clock;
  readonly #gate: Gate;
  #aheadMs: number;

  constructor(world: Clock, gate = new Gate(), aheadMs = 0) {
    this.#world = world;
    this.#gate = gate;
    this.#aheadMs = aheadMs;
  }

  now(): number {
    return this.#world.now() + this.#aheadMs;
  }

  setTimer(callback: () => void, delayMs: number): unknown {
    const timer = { isCleared: false, inner: undefined as unknown };
    const fire = () => {
      if (!timer.isCleared) callback();
    };
    timer.inner = this.#world.setTimer(() => this.#gate.enter(fire), delayMs);
    return timer;
  }

  clearTimer(timer: unknown): void {
    const mine = timer as { isCleared: boolean; readonly inner: unknown };
    mine.isCleared = true;
    this.#world.clearTimer(mine.inner);
  }

  /** Only the clock of a store jumps backwards: a process counts from its start and never goes back. */
  jump(ms: number): void {
    this.#aheadMs += ms;
  }
}
