/** A semaphore of the service with the shape of the library's `Semaphore`. Its slots are shared by a fleet. */
import { AcquireTimeoutError } from "./errors.ts";
import { check, type SemaphoreAcquireOptions, unexpected } from "./options.ts";
import { runWithSlot, type Work } from "./run-with-slot.ts";
import type { ServiceSlot } from "./slot.ts";
import type { Take } from "./slot-taker.ts";

/** The longest wait that the service accepts. */
const LONGEST_WAIT_MS = 86_400_000;
/** How long an acquire with `timeoutMs: 0` waits for the service to find out whether a slot is free. */
const NOW_MS = 5_000;
const ACQUIRE_KINDS = {
  bucket: "",
  width: "a positive number",
  signal: "an object",
  timeoutMs: "",
  onPending: "a function",
} as const;

/** A semaphore whose slots are shared by all processes that use its name. */
export interface ServiceSemaphore {
  /** The name that was passed to `SlotClient.semaphore`. */
  readonly name: string;
  /** The number of slots. */
  readonly capacity: number;
  /** Waits for a slot. `timeoutMs: 0` does not wait. */
  acquire(options?: SemaphoreAcquireOptions): Promise<ServiceSlot>;
  /** Returns a free slot, or `undefined`. It does not wait for a slot, and it does not throw if none is free. */
  tryAcquire(): Promise<ServiceSlot | undefined>;
  /** Runs the work while it holds a slot, and releases the slot when the work ends. */
  run<T>(work: Work<T>, options?: SemaphoreAcquireOptions): Promise<Awaited<T>>;
  /** Releases a slot by its `id`. Returns true only if that id is a held slot that was acquired here. */
  release(id: string): Promise<boolean>;
}

export function serviceSemaphore(name: string, slots: number, take: Take): ServiceSemaphore {
  check({ name }, { name: "a non-empty string" }, "name");
  if (!(Number.isInteger(slots) && slots > 0)) throw unexpected("slots", "an integer above 0", slots, RangeError);
  const held = new Map<string, ServiceSlot>();
  const acquire = async (options: SemaphoreAcquireOptions = {}) => {
    const { timeoutMs = LONGEST_WAIT_MS, ...rest } = check(options, ACQUIRE_KINDS);
    if (!(timeoutMs >= 0)) throw unexpected("timeoutMs", "at least 0", timeoutMs);
    const maxWaitMs = Math.min(timeoutMs || NOW_MS, LONGEST_WAIT_MS);
    return take({ ...rest, hostname: `sem:${name}`, maxWaitMs, limit: slots, isNow: !timeoutMs, held });
  };
  return {
    name,
    capacity: slots,
    acquire,
    tryAcquire: () =>
      acquire({ timeoutMs: 0 }).catch((error: unknown) => {
        if (!(error instanceof AcquireTimeoutError)) throw error;
        return undefined;
      }),
    run: (work, options = {}) => runWithSlot(work, () => acquire(options), options?.signal),
    release: async (id) => (await held.get(id)?.release()) ?? false,
  };
}
