import type { FairQueueConfig } from "@slotkeeper/protocol";
import { type QueueOptions, resolveOptions } from "../options.ts";
import type { StoreTime } from "./store-time.ts";

/**
 * The settings of this instance, and when they were loaded. For each host, the settings that an instance of the fleet
 * loaded last are in force.
 */
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
    // Always later than the last load, even within one tick of the clock.
    this.#loadedAt = Math.max(this.#time.now(), this.#loadedAt + 1 / 1024);
  }

  /** The store's clock is known now. The settings get the current store time as their load time. */
  restamp(): void {
    this.#loadedAt = this.#time.now();
  }
}
