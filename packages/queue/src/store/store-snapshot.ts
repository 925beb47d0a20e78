import { viewOf } from "./grant-round.ts";
import type { HostBook } from "./host-book.ts";
import type { HostSnapshot, StoreTotals } from "./slot-store.ts";

/** Reads and changes nothing: what time has ended is left out, not ended. Looking must not make anything happen. */
export function snapshotOf(book: HostBook, now: number): HostSnapshot {
  const { ledger, policy, breaker } = book;
  const leases = [...book.leases.values()].filter(({ endsAt }) => endsAt > now);
  const held = new Map<string, number>();
  for (const { account } of leases) held.set(account.bucket, (held.get(account.bucket) ?? 0) + 1);
  return {
    host: book.host,
    slots: policy.slots,
    inFlight: leases.length,
    waiting: ledger.waiting,
    progress: ledger.progress,
    breaker: breaker.view(now, policy.breaker),
    live: book.live,
    buckets: Array.from(ledger.accounts.values(), ({ bucket, weight, waiting }) => ({
      bucket,
      inFlight: held.get(bucket) ?? 0,
      usedMs: viewOf(book, bucket, weight, now).usedMs,
      waiting,
      weight,
    })),
    leases: leases.map((lease) => ({
      slot: lease.fence,
      session: lease.session,
      bucket: lease.account.bucket,
      endsInMs: lease.endsAt - now,
      heldMs: now - lease.grantedAt,
      isReleased: lease.isReleased,
      isProbe: lease.isProbe,
    })),
  };
}

/**
 * O(hosts), and nothing is made for any of them. Leases that have run out and were not looked at since are counted as
 * held: the sum is for a chart, and the next call to their host puts it right.
 */
export function totalsOf(books: Iterable<HostBook>, now: number): StoreTotals {
  const totals = { hosts: 0, slots: 0, inFlight: 0, waiting: 0, open: 0, spaced: 0 };
  for (const { policy, leases, ledger, breaker, lastEndAt } of books) {
    totals.hosts++;
    totals.slots += policy.slots;
    totals.inFlight += leases.size;
    totals.waiting += ledger.waiting;
    if (breaker.view(now, policy.breaker).phase !== "closed") totals.open++;
    if (policy.smoothMs > 0 && lastEndAt + policy.smoothMs > now) totals.spaced++;
  }
  return totals;
}
