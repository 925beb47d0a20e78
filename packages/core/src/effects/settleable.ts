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
