/** The library's semaphore over the service: the same shape, the slots shared by a fleet. */
import { checkSemaphoreAcquire, checkWork, type SemaphoreAcquireOptions } from "./options.ts";
import { runWithSlot, type Work } from "./run-with-slot.ts";
import type { ServiceSlot } from "./slot.ts";
import type { Ask } from "./slot-wait.ts";

/** The service takes no longer wait. */
const LONGEST_WAIT_MS = 86_400_000;
/** How long "now or never" waits for the service to find out whether a slot is free. */
const NOW_MS = 5_000;
const MOST_SLOTS = 1_000_000;
const LONGEST_NAME = 251;

/** What it needs of its client. */
type Acquire = (ask: Omit<Ask, "named" | "traceparent" | "waitUntil">) => Promise<ServiceSlot>;

export class ServiceSemaphore {
  readonly name: string;
  readonly capacity: number;
  readonly #acquire: Acquire;
  readonly #held = new Map<string, ServiceSlot>();

  /** @internal Made by `SlotClient.semaphore`. */
  constructor(name: string, slots: number, acquire: Acquire) {
    if (typeof name !== "string" || name === "" || name.length > LONGEST_NAME) {
      throw new TypeError(
        `Expected \`name\` to be a string of 1 to ${LONGEST_NAME} characters, got ${JSON.stringify(name)}`,
      );
    }
    if (!Number.isInteger(slots) || slots < 1 || slots > MOST_SLOTS) {
      throw new RangeError(`Expected \`slots\` to be an integer from 1 to ${MOST_SLOTS}, got ${String(slots)}`);
    }
    this.name = name;
    this.capacity = slots;
    this.#acquire = acquire;
  }

  /** Waits its turn. `timeoutMs: 0` means now or never. */
  async acquire(options: SemaphoreAcquireOptions = {}): Promise<ServiceSlot> {
    checkSemaphoreAcquire(options);
    const { signal, timeoutMs = Infinity } = options;
    const isNow = timeoutMs === 0;
    return this.#acquire({
      hostname: `sem:${this.name}`,
      bucket: undefined,
      waitMs: isNow ? NOW_MS : Math.min(timeoutMs, LONGEST_WAIT_MS),
      signal,
      onPending: undefined,
      slots: this.capacity,
      isNow,
      held: this.#held,
    });
  }

  /** A free slot, or undefined: never waits for one, and never throws for "not now". */
  async tryAcquire(): Promise<ServiceSlot | undefined> {
    try {
      return await this.acquire({ timeoutMs: 0 });
    } catch (error) {
      if ((error as { code?: string }).code === "ACQUIRE_TIMEOUT") return undefined;
      throw error;
    }
  }

  async run<T>(work: Work<T>, options: SemaphoreAcquireOptions = {}): Promise<Awaited<T>> {
    checkWork(work);
    return runWithSlot(await this.acquire(options), work, options.signal);
  }

  /** Manual style: true only if that id held a slot that was acquired here. */
  async release(id: string): Promise<boolean> {
    return (await this.#held.get(id)?.release()) ?? false;
  }
}
