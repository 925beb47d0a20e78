import { FairQueue, type QueueEvent, type SlotStore } from "@slotkeeper/queue";
import { FaultyStore, type FaultyStoreInit } from "./faulty-store.ts";
import type { Random } from "./random.ts";
import { SkewedClock } from "./skewed-clock.ts";
import type { VirtualClock } from "./virtual-clock.ts";
import type { WorldPlan } from "./world-plan.ts";

export interface SimInstanceInit {
  readonly name: string;
  readonly store: SlotStore;
  readonly clock: VirtualClock;
  readonly random: Random;
  readonly plan: WorldPlan;
  readonly newId: () => string;
  readonly onDecided: FaultyStoreInit["onDecided"];
  readonly onEvent: (event: QueueEvent, instance: SimInstance) => void;
}

/** One process of the service: an engine, its clock, and its way to the store. It dies without a word. */
export class SimInstance {
  readonly name: string;
  readonly clock: SkewedClock;
  readonly store: FaultyStore;
  readonly queue: FairQueue;
  isAlive = true;

  constructor(init: SimInstanceInit) {
    const { name, plan, random } = init;
    this.name = name;
    this.clock = new SkewedClock(init.clock);
    this.store = new FaultyStore(init);
    this.queue = new FairQueue({
      store: this.store,
      clock: this.clock,
      random: () => random.next(),
      newSessionId: init.newId,
      instance: name,
      config: plan.config,
      observe: (event) => init.onEvent(event, this),
    });
  }

  crash(): void {
    this.isAlive = false;
    this.clock.stop();
    this.store.cut();
  }
}
