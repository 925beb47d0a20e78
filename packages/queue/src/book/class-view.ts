import { type ClassPolicy, classOf, DEFAULT_CLASS } from "@slotkeeper/protocol";
import type { Book } from "./book.ts";
import { ownUse } from "./class-use.ts";
import { classPolicy, fairShareOf } from "./classes.ts";

/** A class of a host for people and for metrics. It only reads. */
export interface ClassView extends ClassPolicy {
  readonly name: string;
  /** The slots of its leases and offers. */
  readonly inFlight: number;
  /** Waiters of the whole fleet. */
  readonly waiting: number;
  /** The fair meter of its lines. Absent: it was not used yet. */
  readonly progressMs?: number;
  /** The slots that are its share now. */
  readonly share: number;
}

/** The classes of a host that has some, by name. A class that the limits no longer have is shown while it is used. */
export function viewClasses(book: Book): readonly ClassView[] {
  const waiting = new Map<string, number>();
  for (const { demand } of book.all("waiter")) waiting.set(classOf(demand), (waiting.get(classOf(demand)) ?? 0) + 1);
  const names = new Set([...Object.keys(book.policy.classes ?? {}), ...book.index.classes.map(({ name }) => name)]);
  return [...names].toSorted().map((name) => {
    const { progress: progressMs } = ownUse(book.head.classes, name) ?? {};
    return {
      name,
      ...classPolicy(book.policy, name),
      inFlight: book.index.ofClass(name)?.inFlight ?? 0,
      waiting: waiting.get(name) ?? 0,
      ...(progressMs === undefined ? {} : { progressMs }),
      share: fairShareOf(book, name),
    };
  });
}

/** The class of a record, where it is worth showing. */
export function shownClass(name: string): { readonly class?: string } {
  return name === DEFAULT_CLASS ? {} : { class: name };
}
