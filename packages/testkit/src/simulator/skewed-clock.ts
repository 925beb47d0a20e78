import type { Clock } from "slotkeeper";

/** The clock of one machine: runs with the world's, may jump ahead of it, and dies with its machine. */
export class SkewedClock implements Clock {
  readonly #world: Clock;
  #aheadMs = 0;
  #isStopped = false;

  constructor(world: Clock) {
    this.#world = world;
  }

  now(): number {
    return this.#world.now() + this.#aheadMs;
  }

  setTimer(callback: () => void, delayMs: number): unknown {
    return this.#world.setTimer(() => {
      if (!this.#isStopped) callback();
    }, delayMs);
  }

  clearTimer(timer: unknown): void {
    this.#world.clearTimer(timer);
  }

  jump(ms: number): void {
    this.#aheadMs += ms;
  }

  stop(): void {
    this.#isStopped = true;
  }
}
