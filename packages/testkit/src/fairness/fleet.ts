import type { BeginAnswer } from "@slotkeeper/protocol";
import { FairQueue, MemoryStore } from "@slotkeeper/queue";
import { Random } from "../random/random.ts";
import { VirtualClock } from "../simulator/virtual-clock.ts";

/** `bucket`: all calls of a bucket go to one instance. `any`: each call goes to any instance. */
export type FleetRouting = "bucket" | "any";

export interface FleetOutcome {
  /** The part of the slot time that was used. */
  readonly utilisation: number;
  /** Jain's index of the buckets' slot time: 1 is equal. */
  readonly jain: number;
  /** The grants of the slowest instance divided by those of the fastest. */
  readonly slowest: number;
}

const INSTANCES = 3;
const SESSIONS = 200;
const BUCKETS = 50;
const SLOTS = 4;
const HOLD_MS = 100;

/** Several instances on one store in virtual time. Each client asks again as soon as it has released its slot. */
export async function runFleet(routing: FleetRouting, durationMs: number): Promise<FleetOutcome> {
  const fleet = new Fleet(routing);
  const outcome = await fleet.run(durationMs);
  fleet.close();
  return outcome;
}

class Fleet {
  readonly #clock = new VirtualClock();
  readonly #queues: FairQueue[];
  readonly #routing: FleetRouting;
  readonly #byInstance = new Array<number>(INSTANCES).fill(0);
  readonly #byBucket = new Array<number>(BUCKETS).fill(0);
  readonly #random = new Random(1);
  #ids = 0;
  #isClosed = false;

  constructor(routing: FleetRouting) {
    this.#routing = routing;
    const store = new MemoryStore({ clock: this.#clock, isShared: true });
    const newId = () => `id-${this.#ids++}`;
    this.#queues = Array.from(this.#byInstance, (_, at) => {
      const config = {
        maxSlotPerHost: SLOTS,
        maxSlotPerIp: -1,
        maxWaitersPerHost: 0,
        globalMaxWaiters: -1,
        maxWaitMs: 1e9,
      };
      const common = { store, clock: this.#clock, random: () => 0.5, newSessionId: newId, newSecret: newId };
      return new FairQueue({ ...common, instance: `i${at}`, config: { ...config, pollWindowMs: 1_000 } });
    });
  }

  async run(durationMs: number): Promise<FleetOutcome> {
    await Promise.all(this.#queues.map((queue) => queue.start()));
    for (let client = 0; client < SESSIONS; client++) void this.#live(client % BUCKETS);
    await this.#clock.run(durationMs);
    const used = this.#byBucket.reduce((sum, one) => sum + one, 0);
    const squares = this.#byBucket.reduce((sum, one) => sum + one * one, 0);
    return {
      utilisation: used / (SLOTS * durationMs),
      jain: (used * used) / (BUCKETS * squares),
      slowest: Math.min(...this.#byInstance) / Math.max(...this.#byInstance),
    };
  }

  close(): void {
    this.#isClosed = true;
    for (const queue of this.#queues) queue.close();
  }

  async #live(bucket: number): Promise<void> {
    while (!this.#isClosed) {
      let at = this.#route(bucket);
      let answer: BeginAnswer = await this.#at(at).begin({ host: "h", bucket: `b${bucket}`, waitMs: 1_000 });
      while (answer.result === "pending" && !this.#isClosed) {
        at = this.#route(bucket);
        answer = await this.#at(at).poll(answer.session);
      }
      if (answer.result !== "granted") return;
      this.#byInstance[at] = (this.#byInstance[at] ?? 0) + 1;
      await new Promise<void>((resolve) => {
        this.#clock.setTimer(resolve, HOLD_MS);
      });
      this.#byBucket[bucket] = (this.#byBucket[bucket] ?? 0) + HOLD_MS;
      this.#at(this.#route(bucket)).release({ slotToken: answer.slotToken });
    }
  }

  #route(bucket: number): number {
    return this.#routing === "bucket" ? bucket % INSTANCES : this.#random.int(0, INSTANCES - 1);
  }

  #at(index: number): FairQueue {
    return this.#queues[index] as FairQueue;
  }
}
