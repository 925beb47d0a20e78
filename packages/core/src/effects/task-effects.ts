/** The effects of tasks, time and the log. What they are given is checked when they are yielded, not when made. */
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
import type { Future } from "./promise.ts";
import type { SpawnOptions, Task } from "./task.ts";

/** What can be waited for: a task, a future, or, in `gather` and `race`, an effect. */
export type Waitable<T> = Task<T> | Future<T>;
export type GroupItem<T> = Waitable<T> | Effect<T>;
/** Not any iterable: an effect is one too, and an item itself. */
type Items<I> = readonly I[] | ReadonlySet<I>;
type ResultOf<I> = I extends Effect<infer T> ? T : I extends Task<infer T> ? T : I extends Future<infer T> ? T : never;

/** Starts a task. The caller goes on, unless the child outranks it. */
export function spawn<T>(program: Runnable<T>, options?: SpawnOptions): Effect<Task<T>> {
  return new EffectNode(SPAWN, program, options);
}

/** The result of a task or future, once it has one; its error is thrown here. */
export function wait<T>(source: Waitable<T>): Effect<T> {
  return new EffectNode(WAIT, source, undefined);
}

/**
 * All results in input order, or the first failure; the others go on either way. Takes the items as arguments, or one
 * array or set of them: an engine puts arguments on its stack, and overflows it (a `RangeError`) at about 120,000.
 */
export function gather<I extends GroupItem<unknown>>(items: Items<I>): Effect<ResultOf<I>[]>;
export function gather<const I extends readonly GroupItem<unknown>[]>(
  ...items: I
): Effect<{ -readonly [K in keyof I]: ResultOf<I[K]> }>;
export function gather(...items: readonly unknown[]): Effect<unknown> {
  return new EffectNode(GATHER, itemsOf(items), undefined);
}

/** The value or error of whatever ends first; the others go on. Takes its items as `gather` does. */
export function race<I extends GroupItem<unknown>>(items: Items<I>): Effect<ResultOf<I>>;
export function race<const I extends readonly GroupItem<unknown>[]>(...items: I): Effect<ResultOf<I[number]>>;
export function race(...items: readonly unknown[]): Effect<unknown> {
  return new EffectNode(RACE, itemsOf(items), undefined);
}

function itemsOf(given: readonly unknown[]): readonly unknown[] {
  const only = given.length === 1 ? given[0] : undefined;
  return Array.isArray(only) || only instanceof Set ? [...(only as Iterable<unknown>)] : given;
}

/** Throws `TaskCancelledError` into the task at its next resumption, so that its `finally` blocks run. */
export function cancel(task: Task<unknown>): Effect<void> {
  return new EffectNode(CANCEL, task, undefined);
}

/** Sleeps. `delay(0)` lets every other runnable task run once. */
export function delay(ms: number): Effect<void> {
  return ms === 0 ? PAUSE : new EffectNode(DELAY, ms, undefined);
}

export function log(message: string): Effect<void> {
  return new EffectNode(LOG, message, undefined);
}

/** Milliseconds: of the clock under `run`, of virtual time from 0 under `simulate`. */
export function now(): Effect<number> {
  return new EffectNode(NOW, undefined, undefined);
}

export type Outcome<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: unknown };

/** Runs the program in place and turns a throw into a value: everything `catch` would catch, cancellation included. */
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
