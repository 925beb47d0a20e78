import type { HostStore } from "@slotkeeper/queue";
import type { Random } from "../random/random.ts";
import type { Gate } from "./gate.ts";
import type { VirtualClock } from "./virtual-clock.ts";
import type { WorldPlan } from "./world-plan.ts";

/** A call whose answer was lost. It may have taken effect, or may still do so. */
class StoreUnreachable extends Error {
  override readonly name = "StoreUnreachable";
}

export interface FaultyStoreInit {
  readonly store: HostStore;
  readonly clock: VirtualClock;
  readonly gate: Gate;
  readonly random: Random;
  readonly plan: WorldPlan;
  /** Called if the instance calls again and again at one instant. */
  readonly onSpin: () => void;
}

type Fault = "lost" | "answer lost" | "late";

/** With more calls of one instance at one instant, it would never stop. */
const SPIN = 500;

/**
 * The store as one instance reaches it: slow, failing before or after the effect, and silent once the instance is dead.
 */
export class FaultyStore implements HostStore {
  readonly isShared: boolean;
  readonly #init: FaultyStoreInit;
  #calledAt = 0;
  #calls = 0;
  /** While true, everything fails. */
  isDown = false;
  isHealed = false;
  inFlight = 0;

  constructor(init: FaultyStoreInit) {
    this.#init = init;
    this.isShared = init.store.isShared;
  }

  read: HostStore["read"] = (host, since) => this.#call((store) => store.read(host, since));
  commit: HostStore["commit"] = (commit) => this.#call((store) => store.commit(commit));
  beat: HostStore["beat"] = (beat) => this.#call((store) => store.beat(beat));
  peek: HostStore["peek"] = (hosts) => this.#call((store) => store.peek(hosts));
  hostKeys: HostStore["hostKeys"] = () => this.#call((store) => store.hostKeys());
  totals: HostStore["totals"] = () => this.#call((store) => store.totals());
  instances: HostStore["instances"] = () => this.#call((store) => store.instances());
  cleanup: HostStore["cleanup"] = (request) => this.#call((store) => store.cleanup(request));

  watch: HostStore["watch"] = (instance, listener) => {
    const { store, random, plan, clock, gate } = this.#init;
    return store.watch(instance, (notice) => {
      if (this.#hits(plan.lostPushes)) return;
      const lateMs = this.#hits(plan.latePushes) ? random.int(1, 1_500) : 0;
      if (lateMs === 0) gate.enter(() => listener(notice));
      else clock.setTimer(() => gate.enter(() => listener(notice)), lateMs);
    });
  };

  async #call<T>(act: (store: HostStore) => T | Promise<T>): Promise<T> {
    const { store, gate } = this.#init;
    if (gate.isClosed || this.#spins()) return new Promise(() => {});
    this.inFlight++;
    try {
      await this.#travel();
      const fault = this.#fault();
      if (fault === "lost") throw new StoreUnreachable("not received");
      if (fault === "late") {
        this.#later(async () => act(store));
        throw new StoreUnreachable("timed out");
      }
      const result = await act(store);
      await this.#travel(true);
      if (fault === "answer lost") throw new StoreUnreachable("answer lost");
      return result;
    } finally {
      this.inFlight--;
    }
  }

  #fault(): Fault | undefined {
    const { random, plan } = this.#init;
    if (this.isDown) return "lost";
    return this.#hits(plan.storeErrors) ? random.pick<Fault>(["lost", "answer lost", "late"]) : undefined;
  }

  #later(act: () => Promise<unknown>): void {
    const { clock, random } = this.#init;
    clock.setTimer(() => void act().catch(() => undefined), random.int(0, 3_000));
  }

  #hits(probability: number): boolean {
    return !this.isHealed && this.#init.random.chance(probability);
  }

  /** On the way back, the answer waits for a paused process. */
  #travel(isBack = false): Promise<void> | undefined {
    const { plan, random, clock, gate } = this.#init;
    if ((plan.store === "calm" || this.isHealed) && !gate.isPaused) return undefined;
    const ms = this.#hits(plan.storeStalls) ? random.int(500, 4_000) : random.int(0, 5);
    return new Promise((resolve) => {
      clock.setTimer(isBack ? () => gate.enter(resolve) : resolve, ms);
    });
  }

  #spins(): boolean {
    const now = this.#init.clock.now();
    this.#calls = now === this.#calledAt ? this.#calls + 1 : 1;
    this.#calledAt = now;
    if (this.#calls < SPIN) return false;
    if (this.#calls === SPIN) this.#init.onSpin();
    return true;
  }
}
