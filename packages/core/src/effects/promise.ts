/** The promises of a run: `createPromise` creates them, any task settles them once, and tasks wait for their future. */
import { PromiseSettledError } from "./errors.ts";
import { describe } from "./program.ts";
import { FULFILLED, FutureNode, PENDING, Settleable } from "./settleable.ts";

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
