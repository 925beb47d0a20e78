/**
 * The expected outcomes that are not a slot. Misuse is a `TypeError` or `RangeError`; cancellation is the signal's own
 * reason, untouched. `docs/reference/errors.md` lists them; a test compares the two.
 */

/** Shared by all copies of the package in one process, so that `isSlotkeeperError` sees through them. */
const brand = Symbol.for("slotkeeper.error");

export abstract class SlotkeeperError extends Error {
  abstract readonly code: string;
  /** The same call may succeed later with nothing changed. */
  readonly retryable: boolean;

  constructor(message: string, retryable: boolean, options?: ErrorOptions, fields?: object) {
    super(message, options);
    this.retryable = retryable;
    Object.assign(this, fields);
  }

  get [brand](): true {
    return true;
  }
}

export function isSlotkeeperError(value: unknown): value is SlotkeeperError {
  return (value as { [brand]?: unknown } | null | undefined)?.[brand] === true;
}

/** Nobody freed a slot in time. */
export class AcquireTimeoutError extends SlotkeeperError {
  override readonly name = "AcquireTimeoutError";
  readonly code = "ACQUIRE_TIMEOUT";
  /** The semaphore's name, if it has one. */
  declare readonly semaphore: string | undefined;
  declare readonly waitedMs: number;
  /** How many others were still waiting. */
  declare readonly waiting: number;

  constructor(semaphore: string | undefined, waitedMs: number, waiting: number) {
    const message = `No slot${of(semaphore)} within ${Math.round(waitedMs)} ms, ${waiting} others waiting`;
    super(message, true, undefined, { semaphore, waitedMs, waiting });
  }
}

/** The semaphore was closed, before or during the wait. The reason given to `close` is the `cause`. */
export class ClosedError extends SlotkeeperError {
  override readonly name = "ClosedError";
  readonly code = "CLOSED";
  declare readonly semaphore: string | undefined;

  /** A reason that is a string is the message, too. */
  constructor(semaphore: string | undefined, reason?: unknown) {
    super(
      typeof reason === "string" ? reason : `No slot${of(semaphore)}: closed`,
      false,
      { cause: reason },
      { semaphore },
    );
  }
}

/** `maxWaiters` others were waiting already. */
export class QueueFullError extends SlotkeeperError {
  override readonly name = "QueueFullError";
  readonly code = "QUEUE_FULL";
  declare readonly semaphore: string | undefined;
  declare readonly waiting: number;

  constructor(semaphore: string | undefined, waiting: number) {
    super(`No slot${of(semaphore)}: ${waiting} others waiting`, true, undefined, { semaphore, waiting });
  }
}

/** The slot was held for longer than its ttl and was taken back. */
export class SlotExpiredError extends SlotkeeperError {
  override readonly name = "SlotExpiredError";
  readonly code = "SLOT_EXPIRED";
  declare readonly semaphore: string | undefined;
  declare readonly heldMs: number;

  constructor(semaphore: string | undefined, heldMs: number) {
    super(`Slot${of(semaphore)} expired after ${Math.round(heldMs)} ms`, false, undefined, { semaphore, heldMs });
  }
}

/** The name is in use with another number of slots. */
export class CapacityMismatchError extends SlotkeeperError {
  override readonly name = "CapacityMismatchError";
  readonly code = "CAPACITY_MISMATCH";
  declare readonly semaphore: string;
  declare readonly capacity: number;
  declare readonly requested: number;

  constructor(semaphore: string, capacity: number, requested: number) {
    const message = `Expected \`slots\`${of(semaphore)} to be ${capacity} while in use, got ${requested}`;
    super(message, false, undefined, { semaphore, capacity, requested });
  }
}

function of(semaphore: string | undefined): string {
  return semaphore === undefined ? "" : ` of "${semaphore}"`;
}
