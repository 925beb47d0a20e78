/** A doubly linked list whose members carry their own links, so that each can leave in O(1) without being looked for. */
export class Link {
  /** The list that it is in. */
  list: LinkedList | undefined = undefined;
  previous: Link | undefined = undefined;
  next: Link | undefined = undefined;
}

export class LinkedList<T extends Link = Link> {
  first: T | undefined = undefined;
  last: T | undefined = undefined;

  /** Puts it last, wherever in this list it was before. */
  add(member: T): void {
    this.remove(member);
    member.list = this as unknown as LinkedList;
    member.previous = this.last;
    if (this.last === undefined) this.first = member;
    else this.last.next = member;
    this.last = member;
  }

  /** Does nothing if it is not in this list. */
  remove(member: T): void {
    if (member.list !== (this as unknown)) return;
    const previous = member.previous as T | undefined;
    const next = member.next as T | undefined;
    if (previous === undefined) this.first = next;
    else previous.next = next;
    if (next === undefined) this.last = previous;
    else next.previous = previous;
    member.list = undefined;
    member.previous = undefined;
    member.next = undefined;
  }
}
