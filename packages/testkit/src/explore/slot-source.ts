/**
 * What the storm drives: the shape that everything which hands out slots has in common, reduced to what can be said
 * about all of them. An adapter makes one on the simulation's clock.
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
  /** Slots that may be held at once: in all, and by one key. */
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
    // No sweep inside the simulated stretch: its timer would only make every run an hour long.
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
