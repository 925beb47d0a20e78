import { viewOf } from "./grant-round.ts";
import type { HostBook } from "./host-book.ts";
import type { HostSnapshot } from "./slot-store.ts";

/** Reads and changes nothing: what time has ended is left out, not ended. Looking must not make anything happen. */
export function snapshotOf(book: HostBook, now: number): HostSnapshot {
  const { ledger, policy, breaker } = book;
  const leases = [...book.leases.values()].filter(({ endsAt }) => endsAt > now);
  const held = (name: string) => leases.filter(({ account }) => account.bucket === name).length;
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
      inFlight: held(bucket),
      usedMs: viewOf(book, bucket, weight, now).usedMs,
      waiting,
      weight,
    })),
    leases: leases.map((lease) => ({
      slot: lease.fence,
      session: lease.session,
      bucket: lease.account.bucket,
      endsInMs: lease.endsAt - now,
      isReleased: lease.isReleased,
      isProbe: lease.isProbe,
    })),
  };
}
