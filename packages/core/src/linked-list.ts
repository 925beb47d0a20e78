/** A doubly linked list whose members carry their own links, so that each can leave in O(1) without being looked for. */
export class Link {
  /** The list that it is in. */
  list: LinkedList | undefined;
  previous: Link | undefined;
  next: Link | undefined;
}

export class LinkedList<T extends Link = Link> {
  declare first: T | undefined;
  declare last: T | undefined;

  /** Puts it last, wherever in this list it was before. */
  add(member: T): void {
    this.remove(member);
    member.list = this as unknown as LinkedList;
    member.previous = this.last;
    if (this.last) this.last.next = member;
    else this.first = member;
    this.last = member;
  }

  /** Does nothing if it is not in this list. */
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
