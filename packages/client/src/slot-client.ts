import {
  ACQUIRE_KINDS,
  type AcquireOptions,
  check,
  type ResolvedOptions,
  resolveOptions,
  type SlotClientOptions,
} from "./options.ts";
import { runWithSlot, type Work } from "./run-with-slot.ts";
import { type ServiceSemaphore, serviceSemaphore } from "./service-semaphore.ts";
import type { ServiceSlot } from "./slot.ts";
import { slotTaker, type Take } from "./slot-taker.ts";

export interface ClientStats {
  /** Slots held now; work let through without one is not counted here. */
  readonly held: number;
  /** Let through without a slot by `onFailure`, ever. */
  readonly unguarded: number;
}

/** Slots of a Slotkeeper service. */
export class SlotClient {
  readonly #options: ResolvedOptions;
  readonly #take: Take;
  readonly #stats = { held: 0, unguarded: 0 };

  constructor(options: SlotClientOptions) {
    this.#options = resolveOptions(options);
    this.#take = slotTaker(this.#options, this.#stats);
  }

  /** Waits for a slot. Rejects with the errors of `errors.ts`, or with the signal's own reason. */
  async acquire(options: AcquireOptions): Promise<ServiceSlot> {
    check(options, ACQUIRE_KINDS, "hostname");
    const { maxWaitMs: waitMs = this.#options.maxWaitMs, ...ask } = options;
    return this.#take({ ...ask, waitMs }, this.#options.hashHostname);
  }

  /** Runs the work while it holds a slot, and gives the slot back whatever happens. */
  async run<T>(options: AcquireOptions, work: Work<T>): Promise<Awaited<T>> {
    return runWithSlot(work, () => this.acquire(options), options.signal);
  }

  /** A semaphore of the service, shared by all that use the name: the library's `Semaphore`, for a fleet. */
  semaphore(name: string, slots: number): ServiceSemaphore {
    return serviceSemaphore(name, slots, this.#take);
  }

  stats(): ClientStats {
    return { ...this.#stats };
  }
}
