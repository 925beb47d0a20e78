/** A member of a doubly linked list. It contains its own links, so it can be removed in O(1) time, without a search. */
export class Link {
  /** The list that contains it. */
  list: LinkedList | undefined;
  previous: Link | undefined;
  next: Link | undefined;
}

export class LinkedList<T extends Link = Link> {
  declare first: T | undefined;
  declare last: T | undefined;

  /** Appends a member. If it is already in this list, it moves to the end. */
  add(member: T): void {
    this.remove(member);
    member.list = this as unknown as LinkedList;
    member.previous = this.last;
    if (this.last) this.last.next = member;
    else this.first = member;
    this.last = member;
  }

  /** Removes a member. Does nothing if it is not in this list. */
  remove(member: T): void {
    if (member.list !== (this as unknown)) return;
    const previous = member.previous as T | undefined;
    const next = member.next as T | undefined;
    if (previous) previous.next = next;
    else this.first = next;
    if (next) next.previous = previous;
    else this.last = previous;
    member.list = undefined;
    member.previous = undefined;
    member.next = undefined;
  }
}
