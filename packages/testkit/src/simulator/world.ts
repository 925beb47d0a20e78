import { MemoryStore, type SlotStore } from "@slotkeeper/queue";
import { ClientHolds } from "./client-holds.ts";
import { Invariants } from "./invariants.ts";
import { Network } from "./network.ts";
import { Random } from "./random.ts";
import { SimClient } from "./sim-client.ts";
import { SimInstance } from "./sim-instance.ts";
import { SkewedClock } from "./skewed-clock.ts";
import { drained, VirtualClock } from "./virtual-clock.ts";
import { planWorld, type WorldPlan } from "./world-plan.ts";

/** A fault put in on purpose, to show that it is caught. */
export interface Plant {
  /** Stands between the store and everybody. */
  readonly store?: (store: SlotStore) => SlotStore;
  readonly newToken?: (random: Random) => () => string;
}

/** Everything there is: clients, network, instances, store, clocks, and chance. One seed, one history. */
export class World {
  readonly plan: WorldPlan;
  readonly random: Random;
  readonly clock = new VirtualClock();
  readonly network: Network;
  readonly holds: ClientHolds;
  readonly storeClock: SkewedClock;
  readonly store: SlotStore;
  readonly invariants: Invariants;
  readonly instances: SimInstance[] = [];
  isClosing = false;
  #ids = 0;
  #names = 0;

  constructor(seed: number, plant: Plant = {}) {
    this.random = new Random(seed);
    this.plan = planWorld(this.random);
    this.network = new Network(this.clock, this.random, this.plan);
    this.holds = new ClientHolds(() => this.clock.now());
    this.storeClock = new SkewedClock(this.clock);
    const newToken = plant.newToken?.(this.random) ?? (() => `token-${this.#ids++}`);
    const store = new MemoryStore({ clock: this.storeClock, newToken, waiterTtlMs: 5_000, idleMs: 5_000 });
    this.store = plant.store?.(store) ?? store;
    this.invariants = new Invariants(this);
    for (let count = 0; count < this.plan.instances; count++) this.#boot();
  }

  newId(): string {
    return `id-${this.#ids++}`;
  }

  /** Where a balancer would send a call: to any that lives, else into the void. */
  anyInstance(): SimInstance {
    return this.random.pick(this.instances);
  }

  pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.clock.setTimer(resolve, ms);
    });
  }

  async run(): Promise<void> {
    const { clients, hosts, buckets, durationMs } = this.plan;
    for (let count = 0; count < clients; count++) {
      void new SimClient(this, this.random.pick(hosts), this.random.pick(buckets)).live();
    }
    this.#planFaults();
    const check = () => this.invariants.check();
    await this.clock.run(durationMs, check);
    this.#heal();
    // Long enough for every deadline, lease, deny window and idle time of the plans to end.
    await this.clock.run(60_000, check);
    await this.store.cleanup({ waiterTtlMs: 20_000 });
    await drained();
    await this.invariants.checkEnd();
  }

  #boot(): void {
    const instance = new SimInstance({
      name: `instance-${this.#names++}`,
      store: this.store,
      clock: this.clock,
      random: this.random,
      plan: this.plan,
      newId: () => this.newId(),
      onDecided: (batch, reply) => this.invariants.onDecided(batch, reply),
      onEvent: (event, from) => this.invariants.onEvent(event, from.name),
    });
    this.instances.push(instance);
  }

  #planFaults(): void {
    const { crashes, instanceJumps, storeJumps, durationMs, isStoreCalm } = this.plan;
    const at = (act: () => void) => this.clock.setTimer(() => !this.isClosing && act(), this.random.int(0, durationMs));
    for (let count = 0; count < crashes; count++) at(() => this.#crashOne());
    for (let count = 0; count < instanceJumps; count++)
      at(() => this.anyInstance().clock.jump(this.random.int(1, 5_000)));
    for (let count = 0; count < storeJumps; count++) at(() => this.storeClock.jump(this.random.int(1, 3_000)));
    if (!isStoreCalm) at(() => this.#storeOutage());
  }

  #crashOne(): void {
    const instance = this.anyInstance();
    if (!instance.isAlive) return;
    instance.crash();
    this.clock.setTimer(
      () => {
        this.instances.splice(this.instances.indexOf(instance), 1);
        this.#boot();
      },
      this.random.int(1, 3_000),
    );
  }

  #storeOutage(): void {
    const { store } = this.anyInstance();
    store.isDown = true;
    this.clock.setTimer(
      () => {
        store.isDown = false;
      },
      this.random.int(1, 2_000),
    );
  }

  #heal(): void {
    this.isClosing = true;
    this.network.isHealed = true;
    for (const { store } of this.instances) {
      store.isHealed = true;
      store.isDown = false;
    }
  }
}
