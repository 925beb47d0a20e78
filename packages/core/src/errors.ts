/**
 * Errors for expected outcomes, such as a timeout. Misuse is a `TypeError` or `RangeError` instead, and cancellation
 * rejects with the unchanged reason of the signal. `docs/reference/errors.md` lists these errors, and a test compares that
 * page with this file.
 */
import { shown } from "./options.ts";

/** All copies of the package in one process share it, so `isSlotkeeperError` recognises errors of other copies. */
const brand = Symbol.for("slotkeeper.error");

/**
 * The base class of all errors for expected outcomes. The message is a sentence for people. Programs should use `code`.
 *
 * @example
 * ```ts
 * import { isSlotkeeperError, Semaphore } from "slotkeeper";
 *
 * const db = new Semaphore(5);
 * try {
 *   await db.run(() => fetch("https://example.com"), { timeoutMs: 500 });
 * } catch (error) {
 *   if (!isSlotkeeperError(error) || !error.retryable) throw error;
 *   console.log(`try again later: ${error.message}`);
 * }
 * ```
 */
export abstract class SlotkeeperError extends Error {
  /** Identifies the class, such as `"ACQUIRE_TIMEOUT"`. */
  declare readonly code: string;
  /** Whether the same call may succeed later without a change. */
  declare readonly retryable: boolean;

  get [brand](): true {
    return true;
  }
}

type ErrorClass<Code, Fields> = new (
  fields: Fields,
  cause?: unknown,
) => SlotkeeperError & { readonly code: Code; readonly retryable: boolean } & Readonly<Fields>;

/**
 * Creates an error class with these fields. The message is the sentence, or the cause if that is a string. The code is made
 * of the name: `AcquireTimeoutError` has `ACQUIRE_TIMEOUT`.
 */
function errorClass<Fields, Code extends string>(
  name: string,
  retryable: boolean,
  sentence: (fields: Fields) => string,
) {
  const code = name
    .slice(0, -5)
    .replace(/\B[A-Z]/g, "_$&")
    .toUpperCase();
  return class extends SlotkeeperError {
    constructor(fields: Fields, cause?: unknown) {
      super(typeof cause === "string" ? cause : sentence(fields), cause === undefined ? undefined : { cause });
      Object.assign(this, { name, code, retryable }, fields);
    }
  } as unknown as ErrorClass<Code, Fields>;
}

/** The semaphore that an error is about. */
interface Named {
  /** Its name, if it has one. */
  semaphore: string | undefined;
}

/** The limit that refused a caller, and its use at that moment. */
export interface Met extends Named {
  /** The key whose limit was reached; `undefined` without keys, or if the common limit was reached. */
  key: unknown;
  /** Number of slots of that limit. */
  capacity: number;
  /** Number of those slots that were held: the sum of their widths. */
  inUse: number;
  /** Number of other waiters there. */
  waiting: number;
}

/** Part of a message: ` of key "ann" of semaphore "uploads"`. */
function of({ semaphore, key }: Partial<Met>): string {
  return ifGiven(" of key ", key) + ifGiven(" of semaphore ", semaphore);
}

function ifGiven(words: string, value: unknown): string {
  return value === undefined ? "" : words + shown(value);
}

function use({ inUse, capacity, waiting, maxWaiters }: Met & { maxWaiters?: number }): string {
  return `(${inUse} of ${capacity} in use, ${waiting || "none"}${ifGiven(" of ", maxWaiters)} waiting)`;
}

/**
 * No slot became free within `timeoutMs` (or `acquireTimeoutMs`). `waitedMs` is the wait in milliseconds. Retryable.
 *
 * Its stack shows the caller of `acquire` or `run` if the semaphore has `traceTimeouts`.
 *
 * @example
 * ```ts
 * import { AcquireTimeoutError, Semaphore } from "slotkeeper";
 *
 * const db = new Semaphore(1, { name: "db", traceTimeouts: true });
 * const held = await db.acquire();
 * await db.acquire({ timeoutMs: 10 }).catch((error: unknown) => {
 *   if (error instanceof AcquireTimeoutError) console.log(error.message, error.waitedMs, error.inUse);
 * });
 * held.release();
 * ```
 */
export class AcquireTimeoutError extends errorClass<Met & { waitedMs: number }, "ACQUIRE_TIMEOUT">(
  "AcquireTimeoutError",
  true,
  (fields) => `Waited ${Math.round(fields.waitedMs)} ms for a slot${of(fields)} ${use(fields)}`,
) {}

/**
 * The semaphore was closed, before or during the wait. The reason given to `close` is the `cause`. If the reason is a
 * string, it is also the message.
 *
 * @example
 * ```ts
 * import { ClosedError, Semaphore } from "slotkeeper";
 *
 * const db = new Semaphore(1);
 * db.close("shutting down");
 * await db.acquire().catch((error: unknown) => {
 *   if (error instanceof ClosedError) console.log(error.message); // shutting down
 * });
 * ```
 */
export class ClosedError extends errorClass<Named, "CLOSED">(
  "ClosedError",
  false,
  ({ semaphore }) => `Semaphore${ifGiven(" ", semaphore)} is closed`,
) {}

/**
 * The queue already had `maxWaiters` waiters. In a `SlotPool`, where `maxWaiters` counts the waiters of all keys, the numbers
 * are those of the pool. Retryable.
 *
 * @example
 * ```ts
 * import { QueueFullError, Semaphore } from "slotkeeper";
 *
 * const db = new Semaphore(1, { maxWaiters: 0 });
 * const held = await db.acquire();
 * await db.acquire().catch((error: unknown) => {
 *   if (error instanceof QueueFullError) console.log(`${error.waiting} others wait`);
 * });
 * held.release();
 * ```
 */
export class QueueFullError extends errorClass<Met & { maxWaiters: number }, "QUEUE_FULL">(
  "QueueFullError",
  true,
  (fields) => `No more waiters are allowed for a slot${of(fields)} ${use(fields)}`,
) {}

/**
 * The slot was held for longer than its ttl and was taken back. `heldMs` is the time since the grant, in milliseconds.
 *
 * @example
 * ```ts
 * import { Semaphore, SlotExpiredError } from "slotkeeper";
 *
 * const db = new Semaphore(1, { ttlMs: 10, abortOnExpiry: true });
 * await db.run(() => new Promise((resolve) => setTimeout(resolve, 50))).catch((error: unknown) => {
 *   if (error instanceof SlotExpiredError) console.log(`held for ${error.heldMs} ms`);
 * });
 * ```
 */
export class SlotExpiredError extends errorClass<Named & { key: unknown; heldMs: number }, "SLOT_EXPIRED">(
  "SlotExpiredError",
  false,
  (fields) => `A slot${of(fields)} expired after ${Math.round(fields.heldMs)} ms and was taken back`,
) {}

/**
 * The name is in use with another number of slots: `capacity`, not `requested`.
 *
 * @example
 * ```ts
 * import { CapacityMismatchError, Semaphore } from "slotkeeper";
 *
 * const slot = new Semaphore(5, { name: "db" }).tryAcquire();
 * try {
 *   new Semaphore(6, { name: "db" });
 * } catch (error) {
 *   if (error instanceof CapacityMismatchError) console.log(error.capacity, error.requested); // 5 6
 * }
 * slot?.release();
 * ```
 */
export class CapacityMismatchError extends errorClass<
  Named & { capacity: number; requested: number },
  "CAPACITY_MISMATCH"
>(
  "CapacityMismatchError",
  false,
  ({ semaphore, capacity, requested }) =>
    `Semaphore ${shown(semaphore)} is in use with a capacity of ${capacity}, got ${requested}`,
) {}

/**
 * Creates an error for a timer. Its stack is that of `trace`, which was recorded where the wait began. Without `trace` it
 * has no stack: its own would show the timer and not the caller, and recording it is four fifths of the cost of a timeout
 * (W4). On hardened hosts `stackTraceLimit` is read-only. `Reflect.set` does not throw there, and the stack is recorded.
 */
export function withStackOf<E extends Error>(trace: Error | undefined, make: () => E): E {
  const { stackTraceLimit } = Error as { stackTraceLimit?: number };
  Reflect.set(Error, "stackTraceLimit", 0);
  const error = make();
  Reflect.set(Error, "stackTraceLimit", stackTraceLimit);
  if (trace?.stack) error.stack = trace.stack.replace(/^.*/, () => String(error));
  return error;
}

/** The codes of `slotkeeper/effects`. */
export type EffectErrorCode = "DEADLOCK" | "OVER_RELEASE" | "PROMISE_SETTLED" | "STEP_LIMIT" | "TASK_CANCELLED";

/** Every error of the package, distinguished by `code`. */
export type AnySlotkeeperError =
  | AcquireTimeoutError
  | ClosedError
  | QueueFullError
  | SlotExpiredError
  | CapacityMismatchError
  | (SlotkeeperError & { readonly code: EffectErrorCode });

/**
 * Whether a value is an error of this package. It also recognises errors of another copy of the package, where
 * `instanceof` fails. The `code` then identifies the class, for the compiler too.
 *
 * @example
 * ```ts
 * import { isSlotkeeperError, Semaphore } from "slotkeeper";
 *
 * const db = new Semaphore(1);
 * await db.acquire({ timeoutMs: 10 }).catch((error: unknown) => {
 *   if (isSlotkeeperError(error) && error.code === "ACQUIRE_TIMEOUT") console.log(error.waitedMs);
 * });
 * ```
 */
export function isSlotkeeperError(value: unknown): value is AnySlotkeeperError {
  return (value as { [brand]?: unknown } | null | undefined)?.[brand] === true;
}
