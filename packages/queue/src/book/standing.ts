import type { Book } from "./book.ts";
import type { LeaseRecord, OfferRecord, SessionRecord, WaiterRecord } from "./records.ts";

/** What the book says of a session. Every verdict is read from here, whoever decided it. */
export type Standing =
  | { readonly kind: "held"; readonly lease: LeaseRecord }
  | { readonly kind: "waiting"; readonly waiter: WaiterRecord; readonly offer: OfferRecord | undefined }
  | { readonly kind: "ended"; readonly record: Pick<SessionRecord, "end" | "code" | "retryAt"> }
  | { readonly kind: "unknown" };

const RELEASED: Standing = { kind: "ended", record: { end: "released" } };
const UNKNOWN: Standing = { kind: "unknown" };

export function standingOf(book: Book, session: string, now: number): Standing {
  const lease = book.leaseOf(session);
  if (lease !== undefined) return lease.isReleased || lease.endsAt <= now ? RELEASED : { kind: "held", lease };
  const waiter = book.get("waiter", session);
  if (waiter !== undefined) return { kind: "waiting", waiter, offer: book.get("offer", session) };
  const record = book.get("session", session);
  return record === undefined || record.keepUntil <= now ? UNKNOWN : { kind: "ended", record };
}
