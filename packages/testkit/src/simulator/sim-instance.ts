import { FairQueue, type HostStore, type QueueEvent } from "@slotkeeper/queue";
import type { Random } from "../random/random.ts";
import { FaultyStore } from "./faulty-store.ts";
import { Gate } from "./gate.ts";
import { SkewedClock } from "./skewed-clock.ts";
import type { VirtualClock } from "./virtual-clock.ts";
import type { Plant } from "./world.ts";
import type { WorldPlan } from "./world-plan.ts";

export interface SimInstanceInit {
  readonly name: string;
  readonly store: HostStore;
  readonly clock: VirtualClock;
  readonly random: Random;
  readonly plan: WorldPlan;
  readonly plant: Plant;
  readonly mostEnds: number;
  readonly newId: () => string;
  readonly newSecret: () => string;
  readonly onSpin: () => void;
  readonly onEvent: (event: QueueEvent) => void;
}

/**
 * One process of the service: an engine, its clock, and its connection to the store. It may pause, and it dies without
 * notice.
 */
export class SimInstance {
  readonly name: string;
  readonly gate = new Gate();
  readonly clock: SkewedClock;
  readonly store: FaultyStore;
  readonly queue: FairQueue;

  constructor(init: SimInstanceInit) {
    const { name, plan, plant, random, mostEnds, newId, newSecret } = init;
    this.name = name;
    this.clock = new SkewedClock(init.clock, this.gate, random.int(-plan.skewMs, plan.skewMs));
    this.store = new FaultyStore({ ...init, gate: this.gate });
    const queue = new FairQueue({
      store: plant.instanceStore?.(this.store, name) ?? this.store,
      clock: this.clock,
      newSessionId: newId,
      newSecret,
      instance: name,
      mostEnds,
      config: plant.config?.(plan.config) ?? plan.config,
      observe: init.onEvent,
    });
    this.queue = plant.queue?.(queue) ?? queue;
    void this.queue.start();
  }

  get isAlive(): boolean {
    return !this.gate.isClosed;
  }

  /** Whether it runs: neither dead nor paused. */
  get isAwake(): boolean {
    return this.isAlive && !this.gate.isPaused;
  }

  crash(): void {
    this.gate.close();
  }
}
