import type { Costs } from "@slotkeeper/protocol";
import type { Book } from "./book.ts";
import { isSameCost } from "./budgets.ts";
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

/** What a session asked for. */
interface Demands {
  readonly width?: number | undefined;
  readonly cost?: Costs | undefined;
}

export function isSameDemand(a: Demands, b: Demands): boolean {
  return (a.width ?? 1) === (b.width ?? 1) && isSameCost(a.cost, b.cost);
}

/** Whether the session asked for something else. One that waits after its deadline is no longer the session of its id. */
export function hasOtherDemand(standing: Standing, demands: Demands, now: number): boolean {
  if (standing.kind === "held") {
    const { width, charge } = standing.lease;
    return !isSameDemand({ width, cost: charge?.asked }, demands);
  }
  return standing.kind === "waiting" && standing.waiter.deadlineAt > now && !isSameDemand(standing.waiter, demands);
}
