/**
 * The expected outcomes that are not a slot. Misuse is a `TypeError` or `RangeError`; cancellation is the signal's own
 * reason, untouched. `docs/reference/errors-client.md` lists them; a test compares the two.
 */

/** The brand of the library's errors, so that its `isSlotkeeperError` recognises these, too. */
const brand = Symbol.for("slotkeeper.error");

export abstract class SlotClientError extends Error {
  declare readonly code: string;
  /** The same call may succeed later with nothing changed. */
  declare readonly retryable: boolean;

  get [brand](): true {
    return true;
  }
}

type ErrorClass<Code, Fields> = new (
  message: string,
  fields: Fields,
  cause?: unknown,
) => SlotClientError & { readonly code: Code } & Readonly<Fields>;

function errorClass<Fields, Code extends string>(name: string, code: Code, retryable: boolean) {
  return class extends SlotClientError {
    constructor(message: string, fields: Fields, cause?: unknown) {
      super(message, { cause });
      Object.assign(this, { name, code, retryable }, fields);
    }
  } as unknown as ErrorClass<Code, Fields>;
}

interface OfHost {
  /** The host, or the semaphore's name with its prefix `sem:`. */
  hostname: string;
}

/** The host's circuit breaker is open. */
export const ThrottledError = errorClass<
  OfHost & {
    /** The upstream's status that opened the breaker; 0 when an operator did. */
    status: number;
    retryAfterMs: number;
    reason: string;
  },
  "THROTTLED"
>("ThrottledError", "THROTTLED", true);

/** The service has as many waiters as it takes. */
export const OverloadedError = errorClass<OfHost & { retryAfterMs: number }, "OVERLOADED">(
  "OverloadedError",
  "OVERLOADED",
  true,
);

/** No slot came free in time. */
export const AcquireTimeoutError = errorClass<
  OfHost & {
    waitedMs: number;
    /** The last place in the queue that the service reported. */
    position: number | undefined;
  },
  "ACQUIRE_TIMEOUT"
>("AcquireTimeoutError", "ACQUIRE_TIMEOUT", true);

/** The service could not be reached, or did not answer as it should. The last failure is the `cause`. */
export const UnavailableError = errorClass<OfHost & { attempts: number; waitedMs: number }, "UNAVAILABLE">(
  "UnavailableError",
  "UNAVAILABLE",
  true,
);

/** The service refuses the call: a wrong token, a wrong address, a field it does not take, another number of slots. */
export const RefusedError = errorClass<
  {
    /** The HTTP status. */
    status: number;
    /** The code of the service's problem document, for example `CAPACITY_MISMATCH`, if it sent one. */
    problem: string | undefined;
  },
  "REFUSED"
>("RefusedError", "REFUSED", false);

/** The reason of `slot.signal`: the lease ended, or the service took the slot back. */
export const SlotLostError = errorClass<OfHost & { heldMs: number }, "SLOT_LOST">("SlotLostError", "SLOT_LOST", false);

export type ThrottledError = InstanceType<typeof ThrottledError>;
export type OverloadedError = InstanceType<typeof OverloadedError>;
export type AcquireTimeoutError = InstanceType<typeof AcquireTimeoutError>;
export type UnavailableError = InstanceType<typeof UnavailableError>;
export type RefusedError = InstanceType<typeof RefusedError>;
export type SlotLostError = InstanceType<typeof SlotLostError>;
