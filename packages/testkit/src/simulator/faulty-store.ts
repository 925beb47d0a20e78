import type { BatchReply, SlotStore, WaiterBatch } from "@slotkeeper/queue";
import type { Random } from "./random.ts";
import type { VirtualClock } from "./virtual-clock.ts";
import type { WorldPlan } from "./world-plan.ts";

/** A call that did not come through; it may have happened all the same. */
class StoreUnreachable extends Error {
  override readonly name = "StoreUnreachable";
}

export interface FaultyStoreInit {
  readonly store: SlotStore;
  readonly clock: VirtualClock;
  readonly random: Random;
  readonly plan: WorldPlan;
  /** Sees every decision the moment it is made. */
  readonly onDecided: (batch: WaiterBatch, reply: BatchReply) => void;
}

/** The store as one instance reaches it: late, failing before or after the deed, and silent once the instance is dead. */
export class FaultyStore implements SlotStore {
  readonly heartbeatMs: number | undefined;
  readonly #init: FaultyStoreInit;
  readonly #stops: (() => void)[] = [];
  #isCut = false;
  /** Everything fails until it is lifted. */
  isDown = false;
  isHealed = false;
  inFlight = 0;

  constructor(init: FaultyStoreInit) {
    this.#init = init;
    this.heartbeatMs = init.store.heartbeatMs;
  }

  /** The instance is dead: nothing it waits for comes any more. */
  cut(): void {
    this.#isCut = true;
    for (const stop of this.#stops) stop();
  }

  checkThrottle: SlotStore["checkThrottle"] = (query) => this.#call((store) => store.checkThrottle(query));
  withdraw: SlotStore["withdraw"] = (batch) => this.#call((store) => store.withdraw(batch));
  release: SlotStore["release"] = (request) => this.#call((store) => store.release(request));
  renew: SlotStore["renew"] = (request) => this.#call((store) => store.renew(request));
  report: SlotStore["report"] = (report) => this.#call((store) => store.report(report));
  cleanup: SlotStore["cleanup"] = (request) => this.#call((store) => store.cleanup(request));
  snapshot: SlotStore["snapshot"] = () => this.#call((store) => store.snapshot());
  operate: SlotStore["operate"] = (action) => this.#call((store) => store.operate(action));

  register: SlotStore["register"] = (batch) =>
    this.#call(async (store) => {
      const reply = await store.register(batch);
      this.#init.onDecided(batch, reply);
      return reply;
    });

  tryAcquire: SlotStore["tryAcquire"] = (batch) =>
    this.#call(async (store) => {
      const reply = await store.tryAcquire(batch);
      this.#init.onDecided(batch, reply);
      return reply;
    });

  onFreed: SlotStore["onFreed"] = (listener) => {
    const { store, random, plan } = this.#init;
    const stop = store.onFreed((freed) => {
      if (this.isHealed || !random.chance(plan.lostPushes)) listener(freed);
    });
    this.#stops.push(stop);
    return stop;
  };

  async #call<T>(act: (store: SlotStore) => Promise<T>): Promise<T> {
    const { store, plan } = this.#init;
    if (this.#isCut) return new Promise(() => {});
    this.inFlight++;
    try {
      await this.#delay();
      if (this.isDown || this.#hits(plan.storeErrors / 2)) throw new StoreUnreachable("not heard");
      const result = await act(store);
      await this.#delay();
      if (this.#hits(plan.storeErrors / 2)) throw new StoreUnreachable("answer lost");
      if (this.#isCut) return await new Promise(() => {});
      return result;
    } finally {
      this.inFlight--;
    }
  }

  #hits(probability: number): boolean {
    return !this.isHealed && this.#init.random.chance(probability);
  }

  #delay(): Promise<void> | undefined {
    const { plan, random, clock } = this.#init;
    if (plan.isStoreCalm || this.isHealed) return undefined;
    const ms = random.chance(plan.storeStalls) ? random.int(500, 4_000) : random.int(0, 5);
    return new Promise((resolve) => {
      clock.setTimer(resolve, ms);
    });
  }
}
