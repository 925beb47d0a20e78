import type { Random } from "../random/random.ts";
import type { Gate } from "./gate.ts";
import type { VirtualClock } from "./virtual-clock.ts";
import type { WorldPlan } from "./world-plan.ts";

/** Carries calls between clients and instances: late, out of order, twice, or not at all. */
export class Network {
  readonly #clock: VirtualClock;
  readonly #random: Random;
  readonly #plan: WorldPlan;
  isHealed = false;

  constructor(clock: VirtualClock, random: Random, plan: WorldPlan) {
    this.#clock = clock;
    this.#random = random;
    this.#plan = plan;
  }

  /**
   * Returns `undefined` if there is no answer within the time. A call that threw, or never returned, has no answer. The
   * process at the other end gets the call when it runs, and learns that its caller has left unless that message is
   * lost.
   */
  call<T>(to: Gate, act: (signal: AbortSignal) => Promise<T> | T, timeoutMs: number): Promise<T | undefined> {
    return new Promise((resolve) => {
      const left = new AbortController();
      const timer = this.#clock.setTimer(() => {
        resolve(undefined);
        this.#send(() => to.enter(() => left.abort()));
      }, timeoutMs);
      const deliver = async () => {
        const result = await act(left.signal);
        if (to.isClosed) return;
        this.#send(() => {
          this.#clock.clearTimer(timer);
          resolve(result);
        });
      };
      const attempt = () => to.enter(() => void deliver().catch(() => undefined));
      this.#send(attempt);
      if (!this.isHealed && this.#random.chance(this.#plan.duplication)) this.#send(attempt);
    });
  }

  #send(arrive: () => void): void {
    if (!this.isHealed && this.#random.chance(this.#plan.loss)) return;
    this.#clock.setTimer(arrive, this.isHealed ? 1 : this.#random.int(0, this.#plan.latencyMs));
  }
}
