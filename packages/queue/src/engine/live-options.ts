import type { FairQueueConfig } from "@slotkeeper/protocol";
import { type QueueOptions, resolveOptions } from "../options.ts";
import type { StoreTime } from "./store-time.ts";

/** The settings in force at this instance, and when they were loaded: the latest of a fleet hold for a host. */
export class LiveOptions {
  readonly #time: StoreTime;
  #current: QueueOptions;
  #loadedAt: number;

  constructor(config: FairQueueConfig | undefined, time: StoreTime) {
    this.#time = time;
    this.#current = resolveOptions(config);
    this.#loadedAt = time.now();
  }

  get current(): QueueOptions {
    return this.#current;
  }

  /** Store time. */
  get loadedAt(): number {
    return this.#loadedAt;
  }

  load(config: FairQueueConfig): void {
    this.#current = resolveOptions(config);
    // Later than before, also within one tick of the clock.
    this.#loadedAt = Math.max(this.#time.now(), this.#loadedAt + 1 / 1024);
  }

  /** The store's clock is known now: what was loaded before was loaded then. */
  restamp(): void {
    this.#loadedAt = this.#time.now();
  }
}
