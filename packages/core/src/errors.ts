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

/** A class of errors with these fields. The message tells them, too, unless the cause is a message. */
function errorClass<Fields, Code extends string>(name: string, code: Code, summary: string, retryable = false) {
  return class extends SlotkeeperError {
    static override readonly name = name;

    constructor(fields: Fields, cause?: unknown) {
      super(typeof cause === "string" ? cause : `${summary} ${JSON.stringify(fields)}`, { cause });
      Object.assign(this, { name, code, retryable }, fields);
    }
  } as unknown as ErrorClass<Code, Fields>;
}

/** Of which semaphore: its name, if it has one. */
interface Named {
  semaphore: string | undefined;
}

/** `waiting`: how many others were still waiting. */
type TimeoutFields = Named & { waitedMs: number; waiting: number };

/** Nobody freed a slot in time. */
export type AcquireTimeoutError = InstanceType<typeof AcquireTimeoutError>;
export const AcquireTimeoutError: ErrorClass<"ACQUIRE_TIMEOUT", TimeoutFields> = errorClass(
  "AcquireTimeoutError",
  "ACQUIRE_TIMEOUT",
  "No slot in time",
  true,
);

/** The semaphore was closed, before or during the wait. The reason given to `close` is the `cause`. */
export type ClosedError = InstanceType<typeof ClosedError>;
export const ClosedError: ErrorClass<"CLOSED", Named> = errorClass("ClosedError", "CLOSED", "Closed");

/** `maxWaiters` others were waiting already. */
export type QueueFullError = InstanceType<typeof QueueFullError>;
export const QueueFullError: ErrorClass<"QUEUE_FULL", Named & { waiting: number }> = errorClass(
  "QueueFullError",
  "QUEUE_FULL",
  "Too many waiting",
  true,
);

/** The slot was held for longer than its ttl and was taken back. */
export type SlotExpiredError = InstanceType<typeof SlotExpiredError>;
export const SlotExpiredError: ErrorClass<"SLOT_EXPIRED", Named & { heldMs: number }> = errorClass(
  "SlotExpiredError",
  "SLOT_EXPIRED",
  "Held too long",
);

/** The name is in use with another number of slots. */
export type CapacityMismatchError = InstanceType<typeof CapacityMismatchError>;
export const CapacityMismatchError: ErrorClass<
  "CAPACITY_MISMATCH",
  Named & { capacity: number; requested: number }
> = errorClass("CapacityMismatchError", "CAPACITY_MISMATCH", "In use with another capacity");
