/**
 * Effects are plain values: an operation and what it is about. A program asks for one by `yield*` (typed) or `yield`.
 *
 * `yield* effect` does not leave the generator at all when the operation can be done at once: the iterator hands the
 * effect to the interpreter of the running task, and only if that must park is the effect yielded. A step that does not
 * park therefore costs the same at any depth of nested programs, and no generator is suspended for it.
 */
import type { TaskNode } from "./task.ts";

/** Something a program can ask of its scheduler; `yield*` gives a `T`. The same effect may be yielded many times. */
export interface Effect<T> {
  [Symbol.iterator](): Iterator<Effect<unknown>, T, unknown>;
}

/** A cooperative program: a generator that yields effects and returns a `T`. */
export type Program<T> = Generator<Effect<unknown>, T, unknown>;

/** Whatever can be run as a task: a program, a function that makes one, or a single effect. */
export type Runnable<T> = Program<T> | (() => Program<T>) | Effect<T>;

// One number per operation; constants and not an object, so that the switch over them is a jump.
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
// From here on: never done at once.
export const DELAY = 12;
export const GATHER = 13;
export const RACE = 14;
export const FROM_PROMISE = 15;
export const CALL = 16;

/** The operations that can park, or at least switch. */
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

/** What `attempt` answers when the operation cannot be done at once. Not exported itself, see `kept-effects.ts`. */
const park: unique symbol = Symbol("park");
export const PARK: typeof park = park;

/** What an effect needs of the scheduler whose task yields it. */
export interface Interpreter {
  steps: number;
  readonly maxSteps: number;
  readonly running: TaskNode | undefined;
  /** Does the operation for the running task if it need not park, and changes nothing (`PARK`) if it must. */
  attempt(effect: EffectNode<unknown>): unknown;
}

/** The interpreter of the task that runs at this moment, if one does: everything here is single-threaded. */
export let active: Interpreter | undefined;

/** Makes `interpreter` the active one and returns the one before, to be put back: runs may nest. */
export function activate(interpreter: Interpreter | undefined): Interpreter | undefined {
  const before = active;
  active = interpreter;
  return before;
}

const OUTSIDE =
  "Expected an effect to be yielded by a running task, got one outside of any: start its program by `run`, `simulate` or `spawn`";

/** The operation cannot be asked for: there is no running task. */
export function askedOutside(): never {
  throw new TypeError(OUTSIDE);
}

/** As in an iterator's result; `done` is also `undefined` in an effect that is none yet. */
export interface IteratorStep {
  readonly done: boolean | undefined;
  readonly value: unknown;
}

/**
 * An effect is also the iterator of its first `yield*`, and the result object of that iterator: the usual effect, made
 * for one `yield*`, is then the only allocation of its step. Later iterations of the same effect, which may overlap the
 * first, get a copy each. The commonest effects are not even made for one `yield*`: see `kept-effects.ts`.
 */
export class EffectNode<T> implements Effect<T>, IteratorStep {
  readonly op: Operation;
  readonly subject: unknown;
  readonly detail: unknown;
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

  /** First asks, then, only if that had to park (`done` is false), hands on the answer the task was resumed with. */
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

  /** Without it, throwing into a delegating generator would be a `TypeError`. */
  throw(error: unknown): never {
    throw error;
  }
}

/** An effect that stands for a whole program, run in place. `yield*` goes straight into the program. */
export class CallEffect<T> extends EffectNode<T> {
  constructor(program: () => Program<T>) {
    super(CALL, program, undefined);
  }

  override [Symbol.iterator](): Program<T> {
    return (this.subject as () => Program<T>)();
  }
}
