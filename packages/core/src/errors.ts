/**
 * The expected outcomes that are not a slot. Misuse is a `TypeError` or `RangeError`; cancellation is the signal's own
 * reason, untouched. `docs/reference/errors.md` lists them; a test compares the two.
 */

/** Shared by all copies of the package in one process, so that `isSlotkeeperError` sees through them. */
const brand = Symbol.for("slotkeeper.error");

export abstract class SlotkeeperError extends Error {
  declare readonly code: string;
  /** The same call may succeed later with nothing changed. */
  declare readonly retryable: boolean;

  get [brand](): true {
    return true;
  }
}

export function isSlotkeeperError(value: unknown): value is SlotkeeperError {
  return (value as { [brand]?: unknown } | null | undefined)?.[brand] === true;
}

type ErrorClass<Code, Fields> = new (
  fields: Fields,
  cause?: unknown,
) => SlotkeeperError & { readonly code: Code; readonly retryable: boolean } & Readonly<Fields>;

/** A class of errors with these fields. The message is the code and the fields, or the cause if that is a message. */
function errorClass<Fields, Code extends string>(name: string, code: Code, retryable: boolean) {
  return class extends SlotkeeperError {
    constructor(fields: Fields, cause?: unknown) {
      super(typeof cause === "string" ? cause : `${code} ${JSON.stringify(fields)}`, { cause });
      Object.assign(this, { name, code, retryable }, fields);
    }
  } as unknown as ErrorClass<Code, Fields>;
}

/** Of which semaphore: its name, if it has one. */
interface Named {
  semaphore: string | undefined;
}

/** Nobody freed a slot in time. */
export class AcquireTimeoutError extends errorClass<
  Named & {
    waitedMs: number;
    /** How many others were still waiting. */
    waiting: number;
  },
  "ACQUIRE_TIMEOUT"
>("AcquireTimeoutError", "ACQUIRE_TIMEOUT", true) {}

/** The semaphore was closed, before or during the wait. The reason given to `close` is the `cause`. */
export class ClosedError extends errorClass<Named, "CLOSED">("ClosedError", "CLOSED", false) {}

/** `maxWaiters` others were waiting already. */
export class QueueFullError extends errorClass<Named & { waiting: number }, "QUEUE_FULL">(
  "QueueFullError",
  "QUEUE_FULL",
  true,
) {}

/** The slot was held for longer than its ttl and was taken back. */
export class SlotExpiredError extends errorClass<Named & { heldMs: number }, "SLOT_EXPIRED">(
  "SlotExpiredError",
  "SLOT_EXPIRED",
  false,
) {}

/** The name is in use with another number of slots. */
export class CapacityMismatchError extends errorClass<
  Named & { capacity: number; requested: number },
  "CAPACITY_MISMATCH"
>("CapacityMismatchError", "CAPACITY_MISMATCH", false) {}
