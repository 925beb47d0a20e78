/**
 * The expected outcomes that are not a slot, each with its message. Misuse is a `TypeError` or `RangeError`;
 * cancellation is the unchanged reason of the signal. `docs/reference/errors.md` lists them; a test compares the two.
 */

/** The brand of the library's errors, so that its `isSlotkeeperError` recognises these, too. */
const brand = Symbol.for("slotkeeper.error");

/**
 * Base class of all errors of the client. `code` distinguishes them.
 *
 * @example
 * try {
 *   await keeper.run({ hostname: "api.example.com" }, work);
 * } catch (error) {
 *   if (error instanceof SlotClientError && error.retryable) scheduleRetry();
 *   else throw error;
 * }
 */
export abstract class SlotClientError extends Error {
  /** Written out, because a minifier changes the name of the class. */
  static override readonly name: string = "SlotClientError";
  /** A literal of the class, such as `"THROTTLED"`. */
  declare readonly code: string;
  /** Whether the same call may succeed later without any change. */
  declare readonly retryable: boolean;

  /** The name of the class. */
  override get name(): string {
    return this.constructor.name;
  }

  get [brand](): true {
    return true;
  }
}

type ErrorClass<Code, Fields> = new (
  fields: Fields,
  cause?: unknown,
) => SlotClientError & { readonly code: Code } & Readonly<Fields>;

export function errorClass<Fields, Code extends string>(
  name: string,
  code: Code,
  sentence: (fields: Fields) => string,
  retryable = true,
) {
  return class extends SlotClientError {
    static override readonly name: string = name;

    constructor(fields: Fields, cause?: unknown) {
      super(sentence(fields), { cause });
      Object.assign(this, { code, retryable }, fields);
    }
  } as unknown as ErrorClass<Code, Fields>;
}

interface OfHost {
  /** The host, or the name of the semaphore with the prefix `sem:`. */
  hostname: string;
}

interface Later {
  retryAfterMs: number;
}

const later = (it: Later) => `; try again in ${it.retryAfterMs / 1000} s.`;

/**
 * The circuit breaker of the host is open. `status` is the HTTP status that opened it, or 0 if an operator opened it.
 *
 * @example
 * if (error instanceof ThrottledError) setTimeout(retry, error.retryAfterMs);
 */
export const ThrottledError = errorClass<OfHost & Later & { status: number; reason: string }, "THROTTLED">(
  "ThrottledError",
  "THROTTLED",
  (it) => `Requests to "${it.hostname}" are paused${it.status ? ` after status ${it.status}` : ""}${later(it)}`,
);

/**
 * The service accepts no more waiters.
 *
 * @example
 * if (error instanceof OverloadedError) setTimeout(retry, error.retryAfterMs);
 */
export const OverloadedError = errorClass<OfHost & Later, "OVERLOADED">(
  "OverloadedError",
  "OVERLOADED",
  (it) => `The service is full${later(it)}`,
);

/**
 * No slot became free in time. `position` is the last place in the queue that the service reported.
 *
 * @example
 * if (error instanceof AcquireTimeoutError) console.warn(`busy for ${error.waitedMs} ms, place ${error.position}`);
 */
export const AcquireTimeoutError = errorClass<
  OfHost & { waitedMs: number; position: number | undefined },
  "ACQUIRE_TIMEOUT"
>("AcquireTimeoutError", "ACQUIRE_TIMEOUT", (it) => `Waited ${it.waitedMs} ms for a slot of "${it.hostname}".`);

/**
 * The service could not be reached, or its answer is not valid. The last failure is the `cause`.
 *
 * @example
 * if (error instanceof UnavailableError) console.error(error.message, error.cause);
 */
export const UnavailableError = errorClass<
  OfHost & { url: string; attempts: number; waitedMs: number; reason: string },
  "UNAVAILABLE"
>("UnavailableError", "UNAVAILABLE", (it) => `The service at ${it.url} is unavailable: ${it.reason}.`);

/**
 * The service refuses the call: the token or the address is wrong, a field is invalid, or the semaphore has another
 * number of slots. `status` is the HTTP status, `problem` the code of the problem document, for example
 * `CAPACITY_MISMATCH`.
 *
 * @example
 * if (error instanceof RefusedError && error.status === 401) console.error("the shared key is wrong");
 */
export const RefusedError = errorClass<
  { url: string; status: number; problem: string | undefined; reason: string | undefined },
  "REFUSED"
>(
  "RefusedError",
  "REFUSED",
  (it) => `The service at ${it.url} refused the call with status ${it.status}${it.reason ? `: ${it.reason}` : ""}.`,
  false,
);

/**
 * The reason of `slot.signal`: the lease ended, or the service took the slot back.
 *
 * @example
 * slot.signal.addEventListener("abort", () => console.warn(slot.signal.reason.message));
 */
export const SlotLostError = errorClass<OfHost & { heldMs: number; reason: string }, "SLOT_LOST">(
  "SlotLostError",
  "SLOT_LOST",
  (it) => `The slot of "${it.hostname}" was lost after ${it.heldMs} ms: ${it.reason}.`,
  false,
);

export type ThrottledError = InstanceType<typeof ThrottledError>;
export type OverloadedError = InstanceType<typeof OverloadedError>;
export type AcquireTimeoutError = InstanceType<typeof AcquireTimeoutError>;
export type UnavailableError = InstanceType<typeof UnavailableError>;
export type RefusedError = InstanceType<typeof RefusedError>;
export type SlotLostError = InstanceType<typeof SlotLostError>;
