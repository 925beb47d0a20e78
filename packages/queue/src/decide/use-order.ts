import type { Book } from "../book/book.ts";
import { hasClasses, reweigh } from "../book/class-use.ts";
import { forgetCounted } from "../book/leases.ts";
import { startAccounts } from "../book/use.ts";
import type { HostPolicy } from "../host-policy.ts";

/** Call when the limits may have changed. `before`: the limits that the accounts belong to. */
export function useOrder(book: Book, before: HostPolicy | undefined): void {
  if (before !== undefined && before.order !== book.policy.order) startOrder(book, hasClasses(book));
  else useClasses(book);
  if (before !== book.policy) reweigh(book);
}

/** Call before a session joins, with its class. All accounts start again with the first class, and after the last one. */
export function useClasses(book: Book, joining?: string): void {
  const isOn = hasClasses(book, joining);
  if (isOn !== (book.head.classes !== undefined)) startOrder(book, isOn);
}

function startOrder(book: Book, isWithClasses: boolean): void {
  startAccounts(book, isWithClasses);
  forgetCounted(book);
}
