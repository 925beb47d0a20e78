import { viewOf } from "./grant-round.ts";
import type { HostBook } from "./host-book.ts";
import type { HostSnapshot } from "./slot-store.ts";

export function snapshotOf(book: HostBook, now: number): HostSnapshot {
  const { ledger, leases, policy, breaker } = book;
  return {
    host: book.host,
    slots: policy.slots,
    inFlight: ledger.inFlight,
    waiting: ledger.waiting,
    progress: ledger.progress,
    breaker: breaker.view(now, policy.breaker),
    live: book.live,
    buckets: Array.from(ledger.accounts.values(), ({ bucket, weight, waiting }) => ({
      ...viewOf(book, bucket, weight, now),
      waiting,
      weight,
    })),
    leases: Array.from(leases.values(), (lease) => ({
      slot: lease.fence,
      session: lease.session,
      bucket: lease.account.bucket,
      endsInMs: lease.endsAt - now,
      isReleased: lease.isReleased,
      isProbe: lease.isProbe,
    })),
  };
}
