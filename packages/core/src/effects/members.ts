import type { Link, LinkedList } from "../linked-list.ts";

/** The members of a list, first to last. The list must not change during the call. */
export function membersOf<T extends Link>(list: LinkedList<T>): T[] {
  const members: T[] = [];
  for (let member = list.first; member !== undefined; member = member.next as T | undefined) members.push(member);
  return members;
}
