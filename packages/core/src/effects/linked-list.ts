/**
 * An intrusive doubly linked list: the element carries its own links, so that joining a queue allocates nothing and
 * leaving it from the middle (a cancelled or timed-out waiter) is O(1). An element is in one list at a time.
 */
export class Link {
  prev: Link | undefined = undefined;
  next: Link | undefined = undefined;
  list: LinkedList<Link> | undefined = undefined;
}

export class LinkedList<L extends Link> {
  head: L | undefined = undefined;
  tail: L | undefined = undefined;

  push(link: L): void {
    link.list = this as unknown as LinkedList<Link>;
    link.prev = this.tail;
    if (this.tail === undefined) this.head = link;
    else this.tail.next = link;
    this.tail = link;
  }

  /** The caller makes sure that `link` is in this list. */
  remove(link: L): void {
    if (link.prev === undefined) this.head = link.next as L | undefined;
    else link.prev.next = link.next;
    if (link.next === undefined) this.tail = link.prev as L | undefined;
    else link.next.prev = link.prev;
    link.prev = undefined;
    link.next = undefined;
    link.list = undefined;
  }

  shift(): L | undefined {
    const first = this.head;
    if (first !== undefined) this.remove(first);
    return first;
  }

  *[Symbol.iterator](): Generator<L, void, undefined> {
    for (let link = this.head; link !== undefined; link = link.next as L | undefined) yield link;
  }
}
