import type { World } from "./world.ts";

/** A smaller error is one of the estimate, which follows from how long the store takes to answer. */
const EXACT_MS = 30;

/**
 * For how long some instance has a wrong estimate of the store's time: after a jump of a clock until the next answer of
 * the store, which an idle instance gets only with its next beat, and after answers that were very slow. The
 * independent checker needs it, because such an instance gives its sessions a wrong arrival, deadline and idle time.
 */
export class WrongClocks {
  readonly #world: World;
  readonly #onRight: (since: number) => void;
  #since: number | undefined;

  /** `onRight` gets the time since which the estimate was wrong. */
  constructor(world: World, onRight: (since: number) => void) {
    this.#world = world;
    this.#onRight = onRight;
  }

  check(): void {
    const { clock, storeClock, instances } = this.#world;
    const now = storeClock.now();
    if (instances.some(({ isAlive, queue }) => isAlive && Math.abs(queue.now() - now) > EXACT_MS))
      this.#since ??= clock.now();
    else this.close();
  }

  close(): void {
    if (this.#since !== undefined) this.#onRight(this.#since);
    this.#since = undefined;
  }
}
