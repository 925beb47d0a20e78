/**
 * The expected outcomes that are not a slot. Misuse is a `TypeError` or `RangeError`; cancellation is the signal's own
 * reason, untouched. `docs/reference/errors.md` lists the same table; a test compares the two.
 */

/** Every code, and whether the same call may succeed later with nothing changed. */
export const ERROR_CODES = {
  ACQUIRE_TIMEOUT: { retryable: true },
  CLOSED: { retryable: false },
  QUEUE_FULL: { retryable: true },
  SLOT_EXPIRED: { retryable: false },
  CAPACITY_MISMATCH: { retryable: false },
} as const satisfies Record<string, { retryable: boolean }>;

export type ErrorCode = keyof typeof ERROR_CODES;

/** Shared by all copies of the package in one process, so that `isSlotkeeperError` sees through them. */
const brand = Symbol.for("slotkeeper.error");

export abstract class SlotkeeperError extends Error {
  abstract readonly code: string;
  readonly retryable: boolean;

  constructor(message: string, retryable: boolean, options?: ErrorOptions) {
    super(message, options);
    this.retryable = retryable;
  }

  get [brand](): true {
    return true;
  }
}

export function isSlotkeeperError(value: unknown): value is SlotkeeperError {
  return typeof value === "object" && value !== null && (value as { [brand]?: unknown })[brand] === true;
}

/** Nobody freed a slot in time. */
export class AcquireTimeoutError extends SlotkeeperError {
  override readonly name = "AcquireTimeoutError";
  readonly code = "ACQUIRE_TIMEOUT";
  /** The semaphore's name, if it has one. */
  readonly semaphore: string | undefined;
  readonly waitedMs: number;
  /** How many others were still waiting. */
  readonly waiting: number;

  constructor(semaphore: string | undefined, waitedMs: number, waiting: number) {
    super(`No slot${of(semaphore)} within ${Math.round(waitedMs)} ms (${waiting} others waiting)`, true);
    this.semaphore = semaphore;
    this.waitedMs = waitedMs;
    this.waiting = waiting;
  }
}

/** The semaphore was closed, before or during the wait. The reason given to `close` is the `cause`. */
export class ClosedError extends SlotkeeperError {
  override readonly name = "ClosedError";
  readonly code = "CLOSED";

  constructor(message: string, reason?: unknown) {
    super(message, false, reason === undefined ? undefined : { cause: reason });
  }
}

/** `maxWaiters` others were waiting already. */
export class QueueFullError extends SlotkeeperError {
  override readonly name = "QueueFullError";
  readonly code = "QUEUE_FULL";
  readonly semaphore: string | undefined;
  readonly waiting: number;

  constructor(semaphore: string | undefined, waiting: number) {
    super(`The queue${of(semaphore)} is full: ${waiting} are waiting`, true);
    this.semaphore = semaphore;
    this.waiting = waiting;
  }
}

/** The slot was held for longer than its ttl and was taken back. */
export class SlotExpiredError extends SlotkeeperError {
  override readonly name = "SlotExpiredError";
  readonly code = "SLOT_EXPIRED";
  readonly semaphore: string | undefined;
  readonly heldMs: number;

  constructor(semaphore: string | undefined, heldMs: number) {
    super(`A slot${of(semaphore)} was taken back after ${Math.round(heldMs)} ms`, false);
    this.semaphore = semaphore;
    this.heldMs = heldMs;
  }
}

/** The name is in use with another number of slots. */
export class CapacityMismatchError extends SlotkeeperError {
  override readonly name = "CapacityMismatchError";
  readonly code = "CAPACITY_MISMATCH";
  readonly semaphore: string;
  readonly capacity: number;
  readonly requested: number;

  constructor(semaphore: string, capacity: number, requested: number) {
    super(`Semaphore "${semaphore}" is in use with ${capacity} slots, asked for ${requested}`, false);
    this.semaphore = semaphore;
    this.capacity = capacity;
    this.requested = requested;
  }
}

function of(semaphore: string | undefined): string {
  return semaphore === undefined ? "" : ` of "${semaphore}"`;
}
