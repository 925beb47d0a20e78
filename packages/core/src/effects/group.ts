/**
 * One task that waits for several things: the state behind `gather` and `race`.
 *
 * `gather` ends with all values in input order, or with the first failure. `race` ends with the first result. In both
 * cases the other items continue, and the group leaves their lists of observers at once.
 */
import { Link } from "../linked-list.ts";
import { FULFILLED, PENDING, type Settleable } from "./settleable.ts";
import type { TaskNode } from "./task.ts";

class Member extends Link {
  readonly group: Group;
  readonly source: Settleable;
  readonly index: number;

  constructor(group: Group, source: Settleable, index: number) {
    super();
    this.group = group;
    this.source = source;
    this.index = index;
  }
}

export class Group {
  readonly task: TaskNode;
  readonly kind: "gather" | "race";
  readonly #members: Member[];
  readonly #values: unknown[];
  #missing: number;

  constructor(task: TaskNode, kind: "gather" | "race", sources: readonly Settleable[]) {
    this.task = task;
    this.kind = kind;
    this.#values = new Array<unknown>(sources.length);
    this.#missing = sources.length;
    this.#members = sources.map((source, index) => new Member(this, source, index));
  }

  /** Joins the observers of all pending items. Returns true if the group is already decided. */
  join(): boolean {
    for (const member of this.#members) {
      if (member.source.settlement === PENDING) member.source.observe(member);
      else if (this.#count(member)) return true;
    }
    return this.#missing === 0 && this.#decide(this.#values, false);
  }

  /** The items that have not settled yet. */
  get pending(): Settleable[] {
    return this.#members.map((member) => member.source).filter((source) => source.settlement === PENDING);
  }

  /** Leaves every list of observers. */
  leave(): void {
    for (const member of this.#members) member.list?.remove(member);
  }

  /** Handles an item that has settled. Returns the group if that decides it; the `result` of the task is set then. */
  static settled(observer: Link): Group | undefined {
    const member = observer as Member;
    return member.group.#count(member) ? member.group : undefined;
  }

  #count(member: Member): boolean {
    const { settlement, result } = member.source;
    if (this.kind === "race" || settlement !== FULFILLED) return this.#decide(result, settlement !== FULFILLED);
    this.#values[member.index] = result;
    return --this.#missing === 0 && this.#decide(this.#values, false);
  }

  #decide(result: unknown, throws: boolean): true {
    this.leave();
    this.task.result = result;
    this.task.throws = throws;
    return true;
  }
}
