import { type Demand, type DemandDifference, differenceOf } from "@slotkeeper/protocol";
import type { Book } from "./book.ts";
import type { EndingRecord, LeaseRecord, OfferRecord, WaiterRecord } from "./records.ts";

/** The state of a session according to the book. Every answer is derived from it, whichever instance made the decision. */
export type Standing =
  | { readonly kind: "held"; readonly lease: LeaseRecord }
  | { readonly kind: "waiting"; readonly waiter: WaiterRecord; readonly offer: OfferRecord | undefined }
  | { readonly kind: "ended"; readonly record: EndOfSession }
  /** `isBegun`: the session waited before, and the book dropped it when its instance died. */
  | { readonly kind: "unknown"; readonly isBegun: boolean };

export type EndOfSession = Omit<EndingRecord, "kind" | "key">;

const UNKNOWN: Standing = { kind: "unknown", isBegun: false };
const DROPPED: Standing = { kind: "unknown", isBegun: true };

export function standingOf(book: Book, session: string, now: number): Standing {
  const lease = book.leaseOf(session);
  if (lease !== undefined && !lease.isReleased && lease.endsAt > now) return { kind: "held", lease };
  const waiter = book.get("waiter", session);
  if (waiter !== undefined) return { kind: "waiting", waiter, offer: book.get("offer", session) };
  const record = book.get("ending", session);
  if (record !== undefined && record.keepUntil > now)
    return record.end === "dropped" ? DROPPED : { kind: "ended", record };
  return lease === undefined ? UNKNOWN : released(lease);
}

function released({ keepUntil }: LeaseRecord): Standing {
  return { kind: "ended", record: { end: "released", keepUntil } };
}

/** In what the session asked for something else. One that waits after its deadline is no longer the session of its id. */
export function otherDemand(standing: Standing, demand: Demand | undefined, now: number): DemandDifference | undefined {
  if (standing.kind === "held") return differenceOf(standing.lease.charge?.asked, demand);
  if (standing.kind !== "waiting" || standing.waiter.deadlineAt <= now) return undefined;
  return differenceOf(standing.waiter.demand, demand);
}
