import type { FairQueueConfig } from "@slotkeeper/protocol";
import { type BatchReply, FairQueue, MemoryStore, type SlotStore } from "@slotkeeper/queue";
import { Random, VirtualClock } from "@slotkeeper/testkit/simulator";
import type { Clock } from "slotkeeper";

/** A clock of a process that can stand still: time goes on, and its timers fire late. */
class HaltingClock implements Clock {
  readonly #clock = new VirtualClock();
  #stoodMs = 0;

  now(): number {
    return this.#clock.now() + this.#stoodMs;
  }

  setTimer(callback: () => void, delayMs: number): unknown {
    return this.#clock.setTimer(callback, delayMs);
  }

  clearTimer(timer: unknown): void {
    this.#clock.clearTimer(timer);
  }

  standStill(ms: number): void {
    this.#stoodMs += ms;
  }

  run(ms: number): Promise<void> {
    return this.#clock.run(ms);
  }
}

export interface Delays {
  /** On its way to the store. */
  readonly beforeMs?: number;
  /** On its way back. */
  readonly afterMs?: number;
  /** It never got there. */
  readonly isLost?: boolean;
  readonly isAnswerLost?: boolean;
}

export interface StoreCall {
  readonly operation: string;
  readonly instance: string;
}

/** Leases outlast every test: what is held at the end is held by somebody, or lost. */
const LEASE_SECONDS = 100_000;

/** Instances on one memory store, each call of theirs as slow as the test wants it, in virtual time. */
export class SlowWorld {
  readonly clock = new HaltingClock();
  readonly queues: readonly FairQueue[];
  /** The tokens of the slots the store has granted, by fence. */
  readonly grants = new Map<number, string>();
  delays: (call: StoreCall) => Delays = () => ({});
  readonly #memory: MemoryStore;

  constructor(config: FairQueueConfig, instances = 1, seed = 1) {
    const random = new Random(seed);
    let names = 0;
    this.#memory = new MemoryStore({ clock: this.clock, newToken: () => `slot-${names++}` });
    this.queues = Array.from(
      { length: instances },
      (_, index) =>
        new FairQueue({
          store: this.#slowed(`i${index}`),
          clock: this.clock,
          random: () => random.next(),
          newSessionId: () => `session-${names++}`,
          instance: `i${index}`,
          config: { zombieTimeoutSeconds: LEASE_SECONDS, maxHoldSeconds: LEASE_SECONDS, ...config },
          soon: (task) => void this.clock.setTimer(task, 0),
        }),
    );
  }

  get queue(): FairQueue {
    return this.queues[0] as FairQueue;
  }

  /** Runs a little, and gives what has come of it. */
  async settled<T>(promise: Promise<T>): Promise<T> {
    await this.clock.run(100);
    return promise;
  }

  /** The tokens of the slots that are held. */
  async held(): Promise<string[]> {
    const { hosts } = await this.#memory.snapshot();
    return hosts.flatMap(({ leases }) => leases.map(({ slot }) => this.grants.get(slot) ?? ""));
  }

  #slowed(instance: string): SlotStore {
    const memory = this.#memory;
    return new Proxy<SlotStore>(memory, {
      get: (_, key) => {
        const value: unknown = Reflect.get(memory, key);
        if (typeof value !== "function") return value;
        if (key === "onFreed") return value.bind(memory);
        return (argument: never) =>
          this.#call({ operation: String(key), instance }, () => value.call(memory, argument));
      },
    });
  }

  async #call(call: StoreCall, act: () => Promise<unknown>): Promise<unknown> {
    const { beforeMs = 0, afterMs = 0, isLost = false, isAnswerLost = false } = this.delays(call);
    await this.#pause(beforeMs);
    if (isLost) throw new Error("not heard");
    const result = await act();
    if (call.operation === "tryAcquire") this.#note(result as BatchReply);
    await this.#pause(afterMs);
    if (isAnswerLost) throw new Error("answer lost");
    return result;
  }

  #note({ verdicts }: BatchReply): void {
    for (const verdict of verdicts)
      if (verdict.status === "ACQUIRED") this.grants.set(verdict.slot.fence, verdict.slot.slotToken);
  }

  #pause(ms: number): Promise<void> | undefined {
    return ms <= 0 ? undefined : new Promise((resolve) => void this.clock.setTimer(resolve, ms));
  }
}
