import type { HostBooks } from "./host-books.ts";
import type { Lease } from "./lease.ts";
import type { SessionRecords } from "./session-records.ts";
import type { HostImage, LeaseImage, StoreImage } from "./store-image.ts";

/**
 * Puts an image into empty books. Returns the leases that still run.
 *
 * Use starts at zero for everybody: what was used before is lost, and a holder's running time counts from here. Every
 * lease counts as shared, since the life that was granted it may have delivered it: only its token, its end or its
 * client's own word frees it.
 */
export function restoreImage(image: StoreImage, books: HostBooks, records: SessionRecords, now: number): Lease[] {
  for (const [host, hostImage] of image.hosts) restoreHost(host, hostImage, books, now);
  for (const [session, { end, keepUntil }] of image.ends) if (keepUntil > now) records.end(session, end, keepUntil);
  const running: Lease[] = [];
  for (const one of image.leases.values()) {
    if (one.endsAt > now) running.push(restoreLease(one, image, books, records, now));
    else if (one.keepUntil > now) records.end(one.session, "released", one.keepUntil);
  }
  return running;
}

function restoreHost(host: string, image: HostImage, books: HostBooks, now: number): void {
  const book = books.open(host, image.policy, now);
  if (image.limits !== undefined) book.setLive(image.limits);
  if (image.breaker !== undefined) book.breaker.restore(image.breaker);
  if (image.lastEndAt !== undefined) book.lastEndAt = image.lastEndAt;
  for (const [bucket, until] of image.cooldowns) if (until > now) book.startCooldown(bucket, until);
}

function restoreLease(
  one: LeaseImage,
  image: StoreImage,
  books: HostBooks,
  records: SessionRecords,
  now: number,
): Lease {
  const { policy, capacity } = image.hosts.get(one.host) as HostImage;
  const book = books.open(one.host, policy, now);
  if (capacity !== undefined) book.joinCapacity(capacity);
  const { slotToken, session, host, grantedAt, endsAt, isProbe, isReleased } = one;
  const lease: Lease = {
    slotToken,
    fence: one.slot,
    session,
    host,
    account: book.startHold(one.bucket, one.weight),
    grantedAt,
    isProbe,
    instance: "",
    isShared: true,
    endsAt,
    isReleased,
    isOver: false,
    leaseIndex: -1,
  };
  book.addLease(lease);
  records.grant(session, lease, one.keepUntil);
  return lease;
}
