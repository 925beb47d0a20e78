import type { FairQueueConfig } from "@slotkeeper/protocol";
import { type Commit, type CommitReply, FairQueue, type HostStore, MemoryStore } from "@slotkeeper/queue";
import { SkewedClock, VirtualClock } from "@slotkeeper/testkit/simulator";

export interface Delays {
  /** On its way to the store. */
  readonly beforeMs?: number;
  /** On its way back. */
  readonly afterMs?: number;
  /** The call never reached the store. */
  readonly isLost?: boolean;
  readonly isAnswerLost?: boolean;
}

export interface StoreCall {
  readonly operation: string;
  readonly instance: string;
}

/** Leases outlast every test: a slot that is held at the end has a holder, or is lost. */
const LEASE_SECONDS = 100_000;

/** Instances on one memory store in virtual time. The test sets how slow each call is. */
export class SlowWorld {
  readonly #time = new VirtualClock();
  readonly clock = new SkewedClock(this.#time);
  readonly queues: readonly FairQueue[];
  /** The tokens of the slots that were granted. */
  readonly grants = new Set<string>();
  delays: (call: StoreCall) => Delays = () => ({});
  readonly #memory: MemoryStore;

  /** `mostEnds`: how many ends of sessions a host keeps. */
  constructor(config: FairQueueConfig, instances = 1, mostEnds = 1_000) {
    let names = 0;
    this.#memory = new MemoryStore({ clock: this.clock });
    this.queues = Array.from(
      { length: instances },
      (_, index) =>
        new FairQueue({
          store: this.#slowed(`i${index}`),
          clock: this.clock,
          newSessionId: () => `session-${names++}`,
          newSecret: () => `secret-${names++}`,
          instance: `i${index}`,
          mostEnds,
          config: { zombieTimeoutSeconds: LEASE_SECONDS, maxHoldSeconds: LEASE_SECONDS, ...config },
          soon: (task) => void this.clock.setTimer(task, 0),
        }),
    );
  }

  get queue(): FairQueue {
    return this.queues[0] as FairQueue;
  }

  /** Lets virtual time pass, and fires the timers that are due. */
  run(ms: number): Promise<void> {
    return this.#time.run(ms);
  }

  /** Pauses all processes: time continues, and their timers fire late. */
  standStill(ms: number): void {
    this.clock.jump(ms);
  }

  /** Runs for a moment, and returns the result. */
  async settled<T>(promise: Promise<T>): Promise<T> {
    await this.run(100);
    return promise;
  }

  /** The tokens of the slots that are held. */
  async held(): Promise<string[]> {
    const images = await this.#memory.peek(await this.#memory.hostKeys());
    const records = [...images.values()].flatMap((image) => image.records);
    return records.flatMap((record) => (record.kind === "lease" && !record.isReleased ? [record.key] : []));
  }

  /** The store as one instance sees it. */
  #slowed(instance: string): HostStore {
    const memory = this.#memory;
    return new Proxy<HostStore>(memory, {
      get: (_, key) => {
        const value: unknown = Reflect.get(memory, key);
        if (typeof value !== "function") return value;
        if (key === "watch") return value.bind(memory);
        return (...args: unknown[]) =>
          this.#call({ operation: String(key), instance }, async () => {
            const result: unknown = await value.apply(memory, args);
            if (key === "commit") this.#note(args[0] as Commit, result as CommitReply);
            return result;
          });
      },
    });
  }

  async #call(call: StoreCall, act: () => Promise<unknown>): Promise<unknown> {
    const { beforeMs = 0, afterMs = 0, isLost = false, isAnswerLost = false } = this.delays(call);
    await this.#pause(beforeMs);
    if (isLost) throw new Error("lost on the way to the store");
    const result = await act();
    await this.#pause(afterMs);
    if (isAnswerLost) throw new Error("the answer is lost");
    return result;
  }

  #note({ changes }: Commit, { isOk }: CommitReply): void {
    if (!isOk) return;
    for (const record of changes.puts) if (record.kind === "lease") this.grants.add(record.key);
  }

  #pause(ms: number): Promise<void> | undefined {
    return ms <= 0 ? undefined : new Promise((resolve) => void this.clock.setTimer(resolve, ms));
  }
}
