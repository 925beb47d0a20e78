import { hostFact, leaseFact } from "./fact-log.ts";
import type { StoreFact } from "./facts.ts";
import type { HostBook } from "./host-book.ts";
import type { SessionRecords } from "./session-records.ts";

/** The facts of a whole store, in place of all that were told before. What time has ended is left out. */
export function factsOf(books: Iterable<HostBook>, records: SessionRecords, fence: number, now: number): StoreFact[] {
  const facts: StoreFact[] = [{ kind: "fence", fence }];
  for (const book of books) if (!book.isForgettable(now)) facts.push(...hostFacts(book, now));
  for (const { session, lease, end, keepUntil } of records.values()) {
    if (lease !== undefined && !lease.isOver && lease.endsAt > now) facts.push(leaseFact(lease, keepUntil));
    else if (keepUntil > now) facts.push({ kind: "end", session, end: end ?? "released", keepUntil });
  }
  return facts;
}

function* hostFacts(book: HostBook, now: number): Iterable<StoreFact> {
  const { host, policy, breaker, live, lastEndAt } = book;
  yield hostFact(book);
  if (!breaker.isPristine(now, policy.breaker)) yield { kind: "breaker", host, state: breaker.state };
  if (live !== undefined) yield { kind: "limits", host, limits: live };
  if (lastEndAt + policy.smoothMs > now) yield { kind: "spacing", host, lastEndAt };
  for (const [bucket, until] of book.cooldowns(now)) yield { kind: "cooldown", host, bucket, until };
}
