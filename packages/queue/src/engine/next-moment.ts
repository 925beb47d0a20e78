import type { Book } from "../book/book.ts";
import { closesAt } from "../book/breaker.ts";
import type { EngineContext } from "./context.ts";
import type { CycleHost } from "./cycle-host.ts";

/** When a time is reached, the instance of the best-ranked waiter acts first. The other instances act this much later. */
const OTHERS_WAIT_MS = 20;

/** The next time at which the state of a host may change without an input. Undefined: the book has no such time. */
export function nextMoment({ hasPending, cache }: CycleHost, engine: EngineContext): number | undefined {
  const { book } = cache;
  if (book.limits === undefined || (!hasPending && book.size("waiter") === 0)) return undefined;
  let first = Number.POSITIVE_INFINITY;
  for (const at of hasPending ? moments(book, engine) : ownMoments(book)) {
    if (at !== undefined && at > book.now && at < first) first = at;
  }
  if (first === Number.POSITIVE_INFINITY) return undefined;
  return hasBestWaiter(book, engine.instance) ? first : first + OTHERS_WAIT_MS;
}

function moments({ index, head, now, free }: Book, engine: EngineContext): (number | undefined)[] {
  const { scheduler, pollIntervalMs } = engine.options();
  return [
    index.nextLease?.endsAt,
    index.nextOffer?.lapsesAt,
    index.nextDenied?.account?.denyUntil,
    // A bucket outside the pool has no deny window, because no slot was tried for it.
    free > 0 && index.pool.hasOutsiders ? index.nextCooldown?.until : undefined,
    closesAt(head.breaker),
    scheduler.isEnabled && head.isHot ? (head.probedAt ?? now) + pollIntervalMs : undefined,
  ];
}

/**
 * No session of this instance waits, only those of others. They may not know of its last commit yet: a released slot
 * that ends soon, or an offer.
 */
function ownMoments({ index }: Book): (number | undefined)[] {
  const { nextLease, nextOffer } = index;
  return [nextLease?.isReleased === true ? nextLease.endsAt : undefined, nextOffer?.lapsesAt];
}

function hasBestWaiter({ index, head, inFlight, now }: Book, instance: string): boolean {
  const best = index.order.best(index.ledger.level(head.slots, inFlight), now);
  const first = (best ?? index.nextDenied)?.head?.record;
  return first === undefined || first.instance === instance;
}
