/** The effects of the cooperative semaphore. */
import {
  ACQUIRE,
  CallEffect,
  CREATE_SEMAPHORE,
  type Effect,
  EffectNode,
  type Program,
  RELEASE,
  type Runnable,
  TRY_ACQUIRE,
} from "./effect.ts";
import { toProgram } from "./program.ts";
import { SemaphoreHandle } from "./semaphore.ts";

/** Options of `createSemaphore`. */
export interface CreateSemaphoreOptions {
  /** Shown in reports. @defaultValue none */
  readonly name?: string;
}

/** Options of `acquireSemaphore` and `withSemaphore`. */
export interface AcquireSemaphoreOptions {
  /** The longest wait, in milliseconds, before `AcquireTimeoutError`; 0 does not wait. @defaultValue no limit */
  readonly timeoutMs?: number;
}

/**
 * Creates a semaphore with this number of permits, all free.
 *
 * @throws {RangeError} at the yield, if `permits` is not an integer from 1 up.
 * @example
 * ```ts
 * import { createSemaphore, delay, simulate, withSemaphore } from "slotkeeper/effects";
 *
 * simulate(function* () {
 *   const db = yield* createSemaphore(2, { name: "db" });
 *   yield* withSemaphore(db, delay(10));
 * });
 * ```
 */
export function createSemaphore(permits: number, options?: CreateSemaphoreOptions): Effect<SemaphoreHandle> {
  return new EffectNode(CREATE_SEMAPHORE, permits, options);
}

/**
 * Takes a permit. If none is free, waits for one, first come, first served.
 *
 * @example
 * ```ts
 * import { acquireSemaphore, createSemaphore, releaseSemaphore, simulate } from "slotkeeper/effects";
 *
 * simulate(function* () {
 *   const db = yield* createSemaphore(1);
 *   yield* acquireSemaphore(db, { timeoutMs: 100 });
 *   yield* releaseSemaphore(db);
 * });
 * ```
 */
export function acquireSemaphore(semaphore: SemaphoreHandle, options?: AcquireSemaphoreOptions): Effect<void> {
  const kept = options === undefined ? SemaphoreHandle.acquireOf(semaphore) : undefined;
  return kept ?? new EffectNode(ACQUIRE, semaphore, options);
}

/**
 * Takes a permit if one is free, and returns whether it did. It never waits and never overtakes a waiter.
 *
 * @example
 * ```ts
 * import { createSemaphore, releaseSemaphore, simulate, tryAcquireSemaphore } from "slotkeeper/effects";
 *
 * simulate(function* () {
 *   const db = yield* createSemaphore(1);
 *   if (yield* tryAcquireSemaphore(db)) yield* releaseSemaphore(db);
 * });
 * ```
 */
export function tryAcquireSemaphore(semaphore: SemaphoreHandle): Effect<boolean> {
  return new EffectNode(TRY_ACQUIRE, semaphore, undefined);
}

/**
 * Releases a permit, which goes directly to the first waiter, if there is one. The caller continues.
 *
 * @example
 * ```ts
 * import { acquireSemaphore, createSemaphore, releaseSemaphore, simulate } from "slotkeeper/effects";
 *
 * simulate(function* () {
 *   const db = yield* createSemaphore(1);
 *   yield* acquireSemaphore(db);
 *   yield* releaseSemaphore(db);
 * });
 * ```
 */
export function releaseSemaphore(semaphore: SemaphoreHandle): Effect<void> {
  return SemaphoreHandle.releaseOf(semaphore) ?? new EffectNode(RELEASE, semaphore, undefined);
}

/**
 * Runs the program while holding a permit, and always releases it.
 *
 * @example
 * ```ts
 * import { createSemaphore, delay, gather, simulate, withSemaphore } from "slotkeeper/effects";
 *
 * const { now } = simulate(function* () {
 *   const db = yield* createSemaphore(1);
 *   yield* gather(withSemaphore(db, delay(10)), withSemaphore(db, delay(10)));
 * });
 * console.log(now); // 20
 * ```
 */
export function withSemaphore<T>(
  semaphore: SemaphoreHandle,
  program: Runnable<T>,
  options?: AcquireSemaphoreOptions,
): Effect<T> {
  return new CallEffect(() => scoped(semaphore, program, options));
}

function* scoped<T>(
  semaphore: SemaphoreHandle,
  program: Runnable<T>,
  options: AcquireSemaphoreOptions | undefined,
): Program<T> {
  yield* acquireSemaphore(semaphore, options);
  try {
    return yield* toProgram(program, "program");
  } finally {
    yield* releaseSemaphore(semaphore);
  }
}
