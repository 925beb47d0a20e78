/**
 * The things that a task can wait for: tasks and promises.
 *
 * | settlement | result | observers |
 * |---|---|---|
 * | `PENDING`   | for a task: what its next resumption delivers | parked tasks and members of groups |
 * | `FULFILLED` | the value | none |
 * | `REJECTED`  | the error | none |
 *
 * The settlement changes once.
 */
import { Link, LinkedList } from "../linked-list.ts";
import { PromiseSettledError } from "./errors.ts";
import { describe } from "./program.ts";

export const PENDING = 0;
export const FULFILLED = 1;
export const REJECTED = 2;
export type Settlement = typeof PENDING | typeof FULFILLED | typeof REJECTED;

export abstract class Settleable extends Link {
  readonly id: number;
  /** The run to which it belongs. Handles of another run are refused. */
  readonly owner: object;
  settlement: Settlement = PENDING;
  result: unknown = undefined;
  observers: LinkedList | undefined = undefined;

  constructor(id: number, owner: object) {
    super();
    this.id = id;
    this.owner = owner;
  }

  observe(observer: Link): void {
    this.observers ??= new LinkedList();
    this.observers.add(observer);
  }
}

/** The part of a promise of `createPromise` that tasks wait for. */
export class FutureNode extends Settleable {}

declare const resultOf: unique symbol;

/** The part of a promise that tasks wait for. */
export interface Future<T> {
  /** Unique in the run. */
  readonly id: number;
  readonly [resultOf]?: T;
}

/** The part of a promise that settles it. Tasks wait for its `future`. */
export interface PromiseHandle<T> {
  /** The part that tasks wait for. */
  readonly future: Future<T>;
}

export class PromiseNode implements PromiseHandle<unknown> {
  readonly future: FutureNode;

  constructor(future: FutureNode) {
    this.future = future;
  }
}

/** Returns the future to settle, or throws if it already has a result. */
export function unsettled(handle: unknown, owner: object): FutureNode {
  const future = handle instanceof PromiseNode ? handle.future : handle;
  if (!(future instanceof FutureNode)) {
    throw new TypeError(`Expected a promise of \`createPromise\`, got ${describe(handle)}`);
  }
  if (future.owner !== owner) throw belongsElsewhere(future);
  if (future.settlement === PENDING) return future;
  throw new PromiseSettledError(future.id, future.settlement === FULFILLED ? "completed" : "failed");
}

/** The task or future behind a handle of the run `owner`. */
export function settleableOf(handle: unknown, owner: object): Settleable {
  if (!(handle instanceof Settleable)) {
    throw new TypeError(`Expected a task or a future, got ${describe(handle)}`);
  }
  if (handle.owner !== owner) throw belongsElsewhere(handle);
  return handle;
}

function belongsElsewhere(handle: Settleable): TypeError {
  return new TypeError(`${handle instanceof FutureNode ? "Promise" : "Task"} ${handle.id} belongs to another run`);
}
