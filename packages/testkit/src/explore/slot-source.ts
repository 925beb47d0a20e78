/**
 * The common interface of everything that hands out slots, for the storm. An adapter creates one on the clock of the
 * simulation.
 */
import { type Clock, Semaphore, type Slot, SlotPool } from "slotkeeper";

export interface AcquireRequest {
  readonly key: string;
  readonly signal: AbortSignal;
  readonly timeoutMs?: number;
}

export interface SlotSource {
  acquire(request: AcquireRequest): Promise<Slot>;
  tryAcquire(key: string): Slot | undefined;
  /** The largest number of slots that may be held at once: in total, and by one key. */
  readonly limit: number;
  readonly limitPerKey: number;
  readonly inUse: number;
  readonly waiting: number;
}

export function semaphoreSource(slots: number): (clock: Clock) => SlotSource {
  return (clock) => {
    const semaphore = new Semaphore(slots, { clock });
    return {
      acquire: ({ signal, timeoutMs }) => semaphore.acquire({ signal, ...(timeoutMs !== undefined && { timeoutMs }) }),
      tryAcquire: () => semaphore.tryAcquire(),
      limit: slots,
      limitPerKey: slots,
      get inUse() {
        return semaphore.inUse;
      },
      get waiting() {
        return semaphore.waiting;
      },
    };
  };
}

export function poolSource(max: number, maxPerKey: number): (clock: Clock) => SlotSource {
  return (clock) => {
    // No sweep during the simulated time: its timer would only make every run an hour long.
    const pool = new SlotPool({ max, maxPerKey, clock, sweepEveryMs: 86_400_000 });
    return {
      acquire: ({ key, signal, timeoutMs }) =>
        pool.acquire(key, { signal, ...(timeoutMs !== undefined && { timeoutMs }) }),
      tryAcquire: (key) => pool.tryAcquire(key),
      limit: max,
      limitPerKey: maxPerKey,
      get inUse() {
        return pool.inUse;
      },
      get waiting() {
        return pool.waiting;
      },
    };
  };
}
