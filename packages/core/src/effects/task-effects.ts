/**
 * The effects of tasks, time and the log. Their arguments are checked when they are yielded, not when they are created.
 */
import {
  CANCEL,
  CallEffect,
  DELAY,
  type Effect,
  EffectNode,
  GATHER,
  LOG,
  NOW,
  type Program,
  RACE,
  type Runnable,
  SPAWN,
  WAIT,
} from "./effect.ts";
import { PAUSE } from "./kept-effects.ts";
import { toProgram } from "./program.ts";
import type { Future } from "./settleable.ts";
import type { SpawnOptions, Task } from "./task.ts";

/** A task or a future: what `wait` takes. */
export type Waitable<T> = Task<T> | Future<T>;
/** What `gather` and `race` take: a task, a future or an effect. */
export type GroupItem<T> = Waitable<T> | Effect<T>;
/** Not any iterable, because an effect is iterable too, and is itself an item. */
type Items<I> = readonly I[] | ReadonlySet<I>;
type ResultOf<I> = I extends Effect<infer T> ? T : I extends Task<infer T> ? T : I extends Future<infer T> ? T : never;

/**
 * Starts a task. The caller continues, unless the child has a higher priority.
 *
 * @example
 * ```ts
 * import { delay, simulate, spawn, wait } from "slotkeeper/effects";
 *
 * simulate(function* () {
 *   const task = yield* spawn(delay(10), { name: "sleeper" });
 *   yield* wait(task);
 * });
 * ```
 */
export function spawn<T>(program: Runnable<T>, options?: SpawnOptions): Effect<Task<T>> {
  return new EffectNode(SPAWN, program, options);
}

/**
 * Waits for a task or future and returns its result. If it failed, its error is thrown here.
 *
 * @example
 * ```ts
 * import { simulate, spawn, wait } from "slotkeeper/effects";
 *
 * simulate(function* () {
 *   const task = yield* spawn(function* () {
 *     return 42;
 *   });
 *   return yield* wait(task); // 42
 * });
 * ```
 */
export function wait<T>(source: Waitable<T>): Effect<T> {
  return new EffectNode(WAIT, source, undefined);
}

/**
 * Waits for all items and returns their results in input order, or throws the first failure. The other items continue
 * in both cases. Takes the items as arguments, or as one array or set. Use an array for many items: engines put
 * arguments on the stack, which overflows (a `RangeError`) at about 120,000.
 *
 * @example
 * ```ts
 * import { delay, gather, now, simulate } from "slotkeeper/effects";
 *
 * simulate(function* () {
 *   const [, at] = yield* gather(delay(10), now());
 *   return at; // 0
 * });
 * ```
 */
export function gather<I extends GroupItem<unknown>>(items: Items<I>): Effect<ResultOf<I>[]>;
export function gather<const I extends readonly GroupItem<unknown>[]>(
  ...items: I
): Effect<{ -readonly [K in keyof I]: ResultOf<I[K]> }>;
export function gather(...items: readonly unknown[]): Effect<unknown> {
  return new EffectNode(GATHER, itemsOf(items), undefined);
}

/**
 * Returns the value, or throws the error, of the item that ends first. The other items continue. Takes its items as
 * `gather` does.
 *
 * @example
 * ```ts
 * import { delay, fromPromise, race, run } from "slotkeeper/effects";
 *
 * await run(function* () {
 *   yield* race(delay(1_000), fromPromise(fetch("https://example.com")));
 * });
 * ```
 */
export function race<I extends GroupItem<unknown>>(items: Items<I>): Effect<ResultOf<I>>;
export function race<const I extends readonly GroupItem<unknown>[]>(...items: I): Effect<ResultOf<I[number]>>;
export function race(...items: readonly unknown[]): Effect<unknown> {
  return new EffectNode(RACE, itemsOf(items), undefined);
}

function itemsOf(given: readonly unknown[]): readonly unknown[] {
  const only = given.length === 1 ? given[0] : undefined;
  return Array.isArray(only) || only instanceof Set ? [...(only as Iterable<unknown>)] : given;
}

/**
 * Throws `TaskCancelledError` into the task at its next resumption, so that its `finally` blocks run.
 *
 * @example
 * ```ts
 * import { cancel, delay, simulate, spawn } from "slotkeeper/effects";
 *
 * simulate(function* () {
 *   const task = yield* spawn(delay(1_000));
 *   yield* cancel(task);
 * });
 * ```
 */
export function cancel(task: Task<unknown>): Effect<void> {
  return new EffectNode(CANCEL, task, undefined);
}

/**
 * Sleeps for this time, in milliseconds. `delay(0)` lets every other runnable task run once.
 *
 * @throws {RangeError} if `ms` is negative or not a number.
 * @example
 * ```ts
 * import { delay, run } from "slotkeeper/effects";
 *
 * await run(function* () {
 *   yield* delay(10);
 * });
 * ```
 */
export function delay(ms: number): Effect<void> {
  return ms === 0 ? PAUSE : new EffectNode(DELAY, ms, undefined);
}

/**
 * Writes a message to the log of the run: `onLog` gets it at once, and `simulate` returns all of them.
 *
 * @example
 * ```ts
 * import { log, simulate } from "slotkeeper/effects";
 *
 * console.log(simulate(log("hello")).log); // ["hello"]
 * ```
 */
export function log(message: string): Effect<void> {
  return new EffectNode(LOG, message, undefined);
}

/**
 * Returns the time in milliseconds: that of the clock under `run`, and virtual time from 0 under `simulate`.
 *
 * @example
 * ```ts
 * import { delay, now, simulate } from "slotkeeper/effects";
 *
 * simulate(function* () {
 *   yield* delay(5);
 *   return yield* now(); // 5
 * });
 * ```
 */
export function now(): Effect<number> {
  return new EffectNode(NOW, undefined, undefined);
}

/** The result of `tryCatch`: a value, or the error that was thrown. */
export type Outcome<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: unknown };

/**
 * Runs the program in place and turns a thrown error into a value. It catches everything that `catch` does, including
 * cancellation.
 *
 * @example
 * ```ts
 * import { simulate, tryCatch } from "slotkeeper/effects";
 *
 * simulate(function* () {
 *   const outcome = yield* tryCatch(function* () {
 *     throw new Error("no");
 *   });
 *   return outcome.ok; // false
 * });
 * ```
 */
export function tryCatch<T>(program: Runnable<T>): Effect<Outcome<T>> {
  return new CallEffect(() => caught(program));
}

function* caught<T>(program: Runnable<T>): Program<Outcome<T>> {
  try {
    return { ok: true, value: yield* toProgram(program, "program") };
  } catch (error) {
    return { ok: false, error };
  }
}
