import type { FairQueueConfig } from "@slotkeeper/protocol";
import type { FairQueue, HostStore } from "@slotkeeper/queue";
import type { FaultKind } from "../history/line.ts";
import { HistoryRecorder } from "../history/recorder.ts";
import { Random } from "../random/random.ts";
import { ClientHolds } from "./client-holds.ts";
import { History } from "./history.ts";
import { Invariants } from "./invariants.ts";
import { Network } from "./network.ts";
import { SharedStore } from "./shared-store.ts";
import { SimClient } from "./sim-client.ts";
import { SimInstance } from "./sim-instance.ts";
import { SkewedClock } from "./skewed-clock.ts";
import { drained, VirtualClock } from "./virtual-clock.ts";
import { planWorld, type WorldPlan } from "./world-plan.ts";
import { WrongClocks } from "./wrong-clocks.ts";

/** A bug that is added on purpose, to show that the simulator finds it. */
export interface Plant {
  /** Wraps the store for all instances. */
  readonly store?: (store: HostStore) => HostStore;
  /** Wraps the store for one instance. */
  readonly instanceStore?: (store: HostStore, instance: string) => HostStore;
  /** Wraps the engine of one instance. Called after `instanceStore` for the same instance. */
  readonly queue?: (queue: FairQueue) => FairQueue;
  /** Changes the configuration of the instances. The checks use the configuration of the plan. */
  readonly config?: (config: FairQueueConfig) => FairQueueConfig;
  readonly newSecret?: () => () => string;
  /** Changes the engine of all instances. Returns what undoes it. */
  readonly engine?: () => () => void;
}

/** Long enough for every deadline, lease, cooldown and idle time of the plans to end, and for hosts to be forgotten (END4). */
const AFTERMATH_MS = 675_000;
/** How many ends of sessions the hosts keep, by seed. With few of them, ends are forgotten long before their deadlines. */
const MANY_ENDS = 1_000;
const MOST_ENDS = [MANY_ENDS, 8, 3, 1] as const;
/** After this time an open breaker counts as closed. */
const BREAKER_MS = 3_600_000;
/** How long a free slot may wait for a waiter, and how much longer than the network a call takes. */
const PROMPT_MS = 3_000;
const STORE_MS = 30;
/** By then an instance has compared its clock with the store's. */
const NOTICED_MS = 3_000;
/** The waiters of a dead instance count for this long. */
const RECOVERY_MS = 5_000;
/** A host that was unused for this long is deleted from the store. */
const LEFT_OVER_MS = 5_000;

/** The whole simulation: clients, network, instances, store, clocks and random choices. One seed gives one history. */
export class World {
  readonly plan: WorldPlan;
  readonly random: Random;
  /** Chooses the classes of requests. */
  readonly ofClasses: Random;
  readonly clock = new VirtualClock();
  readonly history = new History(this.clock);
  /** What the clients see, for the independent checker. */
  readonly recorder = new HistoryRecorder({ now: () => this.clock.now() });
  readonly network: Network;
  readonly holds: ClientHolds;
  readonly storeClock: SkewedClock;
  readonly store: SharedStore;
  readonly invariants: Invariants;
  readonly instances: SimInstance[] = [];
  /** When something last happened that instances learn only with their next beat. */
  disturbedAt = Number.NEGATIVE_INFINITY;
  failedOverAt = Number.NEGATIVE_INFINITY;
  isClosing = false;
  readonly #mostEnds: number;
  readonly #plant: Plant;
  readonly #reachable: HostStore;
  readonly #newSecret: () => string;
  #ids = 0;
  #names = 0;

  constructor(seed: number, plant: Plant = {}) {
    this.#plant = plant;
    this.#mostEnds = MOST_ENDS[seed % MOST_ENDS.length] as number;
    this.random = new Random(seed);
    // Keys and classes have sources of their own: without them, a seed is the same history as before there were any. By the
    // number of classes, the seeds of known bugs have none.
    this.ofClasses = new Random(seed ^ 0x1db7bb1);
    this.plan = planWorld(this.random, new Random(seed ^ 0x6b6579), this.ofClasses);
    this.network = new Network(this.clock, this.random, this.plan);
    this.holds = new ClientHolds(() => this.clock.now());
    this.storeClock = new SkewedClock(this.clock);
    this.store = new SharedStore(this.storeClock, (kept) => this.invariants.onCommit(kept));
    this.#reachable = plant.store?.(this.store) ?? this.store;
    this.#newSecret = plant.newSecret?.() ?? (() => `secret-${this.#ids++}`);
    this.invariants = new Invariants(this);
    for (let count = 0; count < this.plan.instances; count++) this.#boot();
    this.#recordFacts();
  }

  /** No session that has not ended is taken for ended (`standing.ts`). */
  get keepsAllEnds(): boolean {
    return this.#mostEnds === MANY_ENDS;
  }

  newId(): string {
    return `id-${this.#ids++}`;
  }

  /** An instance as a balancer would choose it: any, also a dead one until that is noticed. */
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
    const clocks = new WrongClocks(this, (since) => {
      this.#recordFault("instance-clock", this.clock.now() - since, "the clock of an instance is wrong", since);
    });
    const check = () => {
      this.invariants.check();
      clocks.check();
    };
    await this.clock.run(durationMs, check);
    this.#heal();
    await this.clock.run(AFTERMATH_MS, check);
    const isBreakerOpen = [...this.store.images()].some(({ head }) => head.breaker.openedAt !== undefined);
    // A host with an open breaker is kept until the breaker counts as closed.
    if (isBreakerOpen) await this.clock.run(BREAKER_MS, check);
    await this.store.cleanup({ idleMs: LEFT_OVER_MS });
    await drained();
    this.invariants.checkEnd();
    clocks.close();
    this.recorder.close();
  }

  #recordFacts(): void {
    const { config, latencyMs, instances, store, durationMs } = this.plan;
    const at = this.clock.now();
    const facts = { instances, isFresh: true, transitMs: latencyMs + STORE_MS, promptMs: PROMPT_MS };
    this.recorder.note({ kind: "facts", at, fairQueue: config, ...facts });
    if (store === "rough") this.#recordFault("delay", durationMs, "the store fails and stalls");
  }

  /** A fault for the independent checker, of `ms`. After it, a part may need some time to recover. */
  #recordFault(fault: FaultKind, ms: number, note: string, from = this.clock.now()): void {
    this.recorder.note({ kind: "fault", fault, from, until: from + ms, note });
    this.recorder.note({ kind: "fault", fault: "delay", from, until: from + ms + RECOVERY_MS, note });
  }

  #boot(): void {
    const name = `i${this.#names++}`;
    const instance = new SimInstance({
      name,
      store: this.#reachable,
      clock: this.clock,
      random: this.random,
      plan: this.plan,
      plant: this.#plant,
      mostEnds: this.#mostEnds,
      newId: () => this.newId(),
      newSecret: this.#newSecret,
      onSpin: () => this.invariants.onSpin(name),
      onEvent: (event) => this.invariants.onEvent(event, name),
    });
    if (this.isClosing) instance.store.isHealed = true;
    this.instances.push(instance);
  }

  #planFaults(): void {
    const { random } = this;
    const { crashes, pauses, failovers, sweeps, instanceJumps, storeJumps, store, durationMs } = this.plan;
    const plan = (count: number, act: () => void) => {
      for (let done = 0; done < count; done++) {
        this.clock.setTimer(() => !this.isClosing && act(), random.int(0, durationMs));
      }
    };
    plan(crashes, () => this.#crashOne());
    plan(pauses, () => this.#pauseOne());
    plan(failovers, () => this.#failOver());
    plan(
      sweeps,
      () =>
        void this.anyInstance()
          .queue.sweep()
          .catch(() => undefined),
    );
    plan(instanceJumps, () => this.#jump(this.anyInstance().clock, random.int(1, 5_000)));
    // A failover to a machine whose clock is behind would break the order of fences, and no store could prevent that.
    plan(storeJumps, () => this.#jump(this.storeClock, random.int(failovers > 0 ? 1 : -2_000, 3_000)));
    plan(store === "rough" ? 1 : 0, () => this.#storeOutage());
  }

  #crashOne(): void {
    const instance = this.anyInstance();
    if (!instance.isAlive) return;
    this.history.note(`${instance.name} dies`);
    instance.crash();
    const bootsInMs = this.random.int(1, 3_000);
    this.clock.setTimer(() => {
      this.instances.splice(this.instances.indexOf(instance), 1);
      this.#boot();
    }, bootsInMs);
    // An instance that was alone loses releases that it had acknowledged: their slots end with their leases.
    const lostMs = this.plan.instances > 1 ? 0 : (this.plan.config.zombieTimeoutSeconds ?? 0) * 1000;
    this.#recordFault("delay", bootsInMs + lostMs, "an instance dies");
  }

  /** Until an instance has compared its clock with the store's: a failing store, or a pause, keeps it from that. */
  get #noticedMs(): number {
    return this.plan.store === "rough" ? NOTICED_MS + RECOVERY_MS : NOTICED_MS;
  }

  #pauseOne(): void {
    const { name, gate } = this.anyInstance();
    this.history.note(`${name} pauses`);
    gate.pause();
    const isUnaware = this.clock.now() - this.disturbedAt < NOTICED_MS;
    const pauseMs = this.random.pick([30, 300, 3_000, 8_000]);
    this.clock.setTimer(() => {
      this.history.note(`${name} goes on`);
      gate.resume();
      // It learns only now that a clock jumped.
      if (isUnaware) this.disturbedAt = this.clock.now();
    }, pauseMs);
    this.#recordFault("delay", pauseMs, "an instance is paused");
  }

  #failOver(): void {
    const lost = this.store.failOver(this.random.int(0, 12));
    this.history.note(`the store fails over and loses ${lost} commits`);
    this.invariants.onFailover(lost);
    this.store.isDown = true;
    const backInMs = this.random.int(1_100, 3_000);
    this.disturbedAt = this.failedOverAt = this.clock.now() + backInMs;
    this.#recordFault("lost-commits", backInMs, "the store fails over");
    this.clock.setTimer(() => {
      this.store.isDown = false;
    }, backInMs);
  }

  #jump(clock: SkewedClock, ms: number): void {
    this.history.note(`the clock of ${clock === this.storeClock ? "the store" : "an instance"} steps by ${ms} ms`);
    clock.jump(ms);
    if (clock === this.storeClock)
      this.#recordFault("store-clock", Math.abs(ms) + this.#noticedMs, "the clock of the store jumps");
    this.disturbedAt = this.clock.now();
  }

  #storeOutage(): void {
    const { store, name } = this.anyInstance();
    this.history.note(`${name} cannot reach the store`);
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
