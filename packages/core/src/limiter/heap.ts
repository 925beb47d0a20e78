/**
 * A binary heap whose members store their positions, so that any member can move or leave in O(log n).
 *
 * HEAP1  No member comes before `first`.
 * HEAP2  The position field of a member is its index in the heap, or -1 while it is not in the heap.
 */
export class Heap<T extends Record<Field, number>, Field extends keyof T & string> {
  readonly #members: T[] = [];
  readonly #field: Field;
  readonly #isBefore: (a: T, b: T) => boolean;

  constructor(field: Field, isBefore: (a: T, b: T) => boolean) {
    this.#field = field;
    this.#isBefore = isBefore;
  }

  get first(): T | undefined {
    return this.#members[0];
  }

  /** Adds the member, or moves it to its place after its order has changed. */
  put(member: T): void {
    let at: number = member[this.#field];
    if (at < 0) {
      at = this.#members.length;
      this.#members.push(member);
    }
    this.#down(member, this.#up(member, at));
  }

  /** Does nothing if the member is not in the heap. */
  remove(member: T): void {
    const at: number = member[this.#field];
    if (at < 0) return;
    (member as Record<Field, number>)[this.#field] = -1;
    const last = this.#members.pop() as T;
    if (last !== member) this.#down(last, this.#up(last, at));
  }

  #up(member: T, from: number): number {
    let at = from;
    while (at > 0) {
      const above = (at - 1) >> 1;
      const other = this.#members[above] as T;
      if (!this.#isBefore(member, other)) break;
      this.#set(other, at);
      at = above;
    }
    return at;
  }

  #down(member: T, from: number): void {
    let at = from;
    for (;;) {
      const below = this.#lesserChild(at);
      const other = this.#members[below];
      if (other === undefined || other === member || !this.#isBefore(other, member)) break;
      this.#set(other, at);
      at = below;
    }
    this.#set(member, at);
  }

  #lesserChild(at: number): number {
    const left = 2 * at + 1;
    const [one, other] = [this.#members[left], this.#members[left + 1]];
    return one !== undefined && other !== undefined && this.#isBefore(other, one) ? left + 1 : left;
  }

  #set(member: T, at: number): void {
    this.#members[at] = member;
    (member as Record<Field, number>)[this.#field] = at;
  }
}
