/** The library's semaphore over the service: the same shape, the slots shared by a fleet. */
import { check, type SemaphoreAcquireOptions, unexpected } from "./options.ts";
import { runWithSlot, type Work } from "./run-with-slot.ts";
import type { ServiceSlot } from "./slot.ts";
import type { Ask } from "./slot-wait.ts";

/** The service takes no longer wait. */
const LONGEST_WAIT_MS = 86_400_000;
/** How long "now or never" waits for the service to find out whether a slot is free. */
const NOW_MS = 5_000;
const ACQUIRE_KINDS = { signal: "an object", timeoutMs: "" } as const;

/** What it needs of its client. */
type Acquire = (ask: Omit<Ask, "named" | "traceparent" | "waitUntil">) => Promise<ServiceSlot>;

export class ServiceSemaphore {
  readonly name: string;
  readonly capacity: number;
  readonly #acquire: Acquire;
  readonly #held = new Map<string, ServiceSlot>();

  /** @internal Made by `SlotClient.semaphore`. */
  constructor(name: string, slots: number, acquire: Acquire) {
    check({ name }, { name: "a non-empty string" });
    if (!Number.isInteger(slots) || slots < 1) {
      throw new RangeError(`Expected \`slots\` to be an integer of at least 1, got ${slots}`);
    }
    this.name = name;
    this.capacity = slots;
    this.#acquire = acquire;
  }

  /** Waits its turn. `timeoutMs: 0` means now or never. */
  async acquire(options: SemaphoreAcquireOptions = {}): Promise<ServiceSlot> {
    check(options, ACQUIRE_KINDS);
    const { signal, timeoutMs = Infinity } = options;
    if (!(timeoutMs >= 0)) throw unexpected("timeoutMs", "a number of at least 0", timeoutMs);
    const isNow = timeoutMs === 0;
    return this.#acquire({
      hostname: `sem:${this.name}`,
      waitMs: isNow ? NOW_MS : Math.min(timeoutMs, LONGEST_WAIT_MS),
      signal,
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
    return runWithSlot(work, () => this.acquire(options), options.signal);
  }

  /** Manual style: true only if that id held a slot that was acquired here. */
  async release(id: string): Promise<boolean> {
    return (await this.#held.get(id)?.release()) ?? false;
  }
}
