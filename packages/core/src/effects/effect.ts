/**
 * Effects are plain values: an operation and its arguments. A program performs one with `yield*` (typed) or `yield`.
 *
 * If the operation can be done at once, `yield* effect` does not suspend the generator: the iterator passes the effect
 * to the interpreter of the running task, and yields it only if the task must park. So a step that does not park costs
 * the same at any depth of nested programs.
 */
import type { TaskNode } from "./task.ts";

/**
 * An operation that a program asks its scheduler for. `yield*` returns a `T`. The same effect may be yielded many
 * times.
 */
export interface Effect<T> {
  [Symbol.iterator](): Iterator<Effect<unknown>, T, unknown>;
}

/** A cooperative program: a generator that yields effects and returns a `T`. */
export type Program<T> = Generator<Effect<unknown>, T, unknown>;

/** Anything that can run as a task: a program, a function that returns one, or a single effect. */
export type Runnable<T> = Program<T> | (() => Program<T>) | Effect<T>;

// One number per operation. They are constants and not members of an object, so that a switch over them becomes a jump.
export const ACQUIRE = 0;
export const RELEASE = 1;
export const TRY_ACQUIRE = 2;
export const SPAWN = 3;
export const WAIT = 4;
export const NOW = 5;
export const LOG = 6;
export const CANCEL = 7;
export const CREATE_SEMAPHORE = 8;
export const CREATE_PROMISE = 9;
export const COMPLETE_PROMISE = 10;
export const FAIL_PROMISE = 11;
// The operations from here on are never done at once.
export const DELAY = 12;
export const GATHER = 13;
export const RACE = 14;
export const FROM_PROMISE = 15;
export const CALL = 16;

/** The operations that can park the task or switch to another one. */
export type Parking =
  | typeof ACQUIRE
  | typeof SPAWN
  | typeof WAIT
  | typeof DELAY
  | typeof GATHER
  | typeof RACE
  | typeof FROM_PROMISE
  | typeof CALL;
export type Operation = Parking | 1 | 2 | 5 | 6 | 7 | 8 | 9 | 10 | 11;

/**
 * The result of `attempt` if the operation cannot be done at once. `kept-effects.ts` explains why it is not exported
 * directly.
 */
const park: unique symbol = Symbol("park");
export const PARK: typeof park = park;

/** The part of a scheduler that an effect of its tasks needs. */
export interface Interpreter {
  steps: number;
  readonly maxSteps: number;
  readonly running: TaskNode | undefined;
  /** Performs the operation for the running task if it need not park. Otherwise changes nothing and returns `PARK`. */
  attempt(effect: EffectNode<unknown>): unknown;
}

/** The interpreter of the task that runs now, if there is one. All of this is single-threaded. */
export let active: Interpreter | undefined;

/** Makes `interpreter` the active one and returns the previous one. The caller restores it, because runs may nest. */
export function activate(interpreter: Interpreter | undefined): Interpreter | undefined {
  const before = active;
  active = interpreter;
  return before;
}

const OUTSIDE =
  "Expected an effect to be yielded by a running task, got one outside of any: start its program by `run`, `simulate` or `spawn`";

/** Throws because an operation was used outside a running task. */
export function askedOutside(): never {
  throw new TypeError(OUTSIDE);
}

/** An iterator result. `done` is also `undefined` in an effect that was not iterated yet. */
export interface IteratorStep {
  readonly done: boolean | undefined;
  readonly value: unknown;
}

/**
 * An effect is also the iterator of its first `yield*`, and the result object of that iterator. So the usual effect,
 * created for one `yield*`, is the only allocation of its step. Later iterations of the same effect may overlap the
 * first, so each gets a copy. The most common effects are created only once: see `kept-effects.ts`.
 */
export class EffectNode<T> implements Effect<T>, IteratorStep {
  readonly op: Operation;
  readonly subject: unknown;
  detail: unknown;
  done: boolean | undefined = undefined;
  value: unknown = undefined;

  constructor(op: Operation, subject: unknown, detail: unknown) {
    this.op = op;
    this.subject = subject;
    this.detail = detail;
  }

  [Symbol.iterator](): Iterator<Effect<unknown>, T, unknown> {
    const iterator = this.done === undefined ? this : new EffectNode<T>(this.op, this.subject, this.detail);
    iterator.done = true;
    return iterator as unknown as Iterator<Effect<unknown>, T, unknown>;
  }

  /**
   * The first call performs the operation. If the task had to park (`done` is false), the second call returns the value
   * of the resumption.
   */
  next(sent: unknown): IteratorStep {
    if (this.done === false) {
      this.done = true;
      this.value = sent;
      return this;
    }
    if (active === undefined) askedOutside();
    const value = this.op >= DELAY ? park : active.attempt(this);
    const mustPark = value === park;
    this.done = !mustPark;
    this.value = mustPark ? this : value;
    return this;
  }

  /** Required: without it, throwing into a delegating generator would be a `TypeError`. */
  throw(error: unknown): never {
    throw error;
  }
}

/** An effect that stands for a whole program and runs in place. `yield*` enters the program directly. */
export class CallEffect<T> extends EffectNode<T> {
  constructor(program: () => Program<T>) {
    super(CALL, program, undefined);
  }

  override [Symbol.iterator](): Program<T> {
    return (this.subject as () => Program<T>)();
  }
}
