import { ACQUIRE_KINDS, type AcquireOptions, check, resolveOptions, type SlotClientOptions } from "./options.ts";
import { runWithSlot, type Work } from "./run-with-slot.ts";
import { type ServiceSemaphore, serviceSemaphore } from "./service-semaphore.ts";
import type { ServiceSlot } from "./slot.ts";
import { slotTaker, type Take } from "./slot-taker.ts";

/** The result of `SlotClient.stats`. */
export interface ClientStats {
  /** The number of slots that the client holds now. Work that runs without a slot is not counted. */
  readonly held: number;
  /** How often `onFailure` has let work run without a slot since the start. */
  readonly unguarded: number;
}

/**
 * Takes slots of a Slotkeeper service. Create one client and use it for all calls.
 *
 * @example
 * ```ts
 * import { SlotClient } from "@slotkeeper/client";
 *
 * const keeper = new SlotClient({ url: "http://127.0.0.1:8080" });
 * const page = await keeper.run({ hostname: "api.example.com", bucket: "customer-7" }, async (slot) => {
 *   const response = await fetch("https://api.example.com/", { signal: slot.signal });
 *   return response.text();
 * });
 * ```
 */
export class SlotClient {
  readonly #take: Take;
  readonly #stats = { held: 0, unguarded: 0 };

  /**
   * @throws {TypeError} if an option is unknown or has the wrong type.
   * @throws {RangeError} if a number is out of range.
   */
  constructor(options: SlotClientOptions) {
    this.#take = slotTaker(resolveOptions(options), this.#stats);
  }

  /**
   * Waits for a slot, at most `maxWaitMs`.
   *
   * @returns a promise that rejects with `ThrottledError`, `OverloadedError`, `AcquireTimeoutError`, `UnavailableError`
   * or `RefusedError`, or with the signal's own reason.
   * @example
   * const slot = await keeper.acquire({ hostname: "api.example.com", bucket: "customer-7" });
   * try {
   *   const response = await fetch("https://api.example.com/", { signal: slot.signal });
   *   await slot.release({ status: response.status });
   * } finally {
   *   await slot.release();
   * }
   */
  async acquire(options: AcquireOptions): Promise<ServiceSlot> {
    return this.#take(check(options, ACQUIRE_KINDS, "hostname"), true);
  }

  /**
   * Runs the work while it holds a slot, and releases the slot when the work ends or fails.
   *
   * @returns the result of the work. Rejects with the error of the work, and for the same reasons as `acquire`.
   */
  async run<T>(options: AcquireOptions, work: Work<T>): Promise<Awaited<T>> {
    return runWithSlot(work, () => this.acquire(options), options?.signal);
  }

  /**
   * A semaphore of the service, shared by all processes that use the name. It has the shape of the library's
   * `Semaphore`.
   *
   * @example
   * const jobs = keeper.semaphore("jobs", 2); // two at a time in the whole fleet
   * await jobs.run(() => backUp());
   */
  semaphore(name: string, slots: number): ServiceSemaphore {
    return serviceSemaphore(name, slots, this.#take);
  }

  /** Returns how many slots this client holds, and how often it let work run without one. */
  stats(): ClientStats {
    return { ...this.#stats };
  }
}
