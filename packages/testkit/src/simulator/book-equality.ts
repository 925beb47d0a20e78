import { isDeepStrictEqual } from "node:util";
import { classOf } from "@slotkeeper/protocol";
import { type BookImage, type BookRecord, type KeptHost } from "@slotkeeper/queue";
import { Book } from "@slotkeeper/queue/internals";

/**
 * The difference between the cached book of an instance and the host in the store at the same tag; `undefined` if there
 * is none.
 */
export function differenceOf(cached: Book, kept: KeptHost): string | undefined {
  return (
    imageDifference(cached.image(), kept) ??
    indexDifference(cached, Book.of(kept.host, kept.tag, kept)) ??
    classDifference(cached, kept)
  );
}

/** The slots that the index counts for each class are those of its leases and offers. */
function classDifference({ index }: Book, { records }: KeptHost): string | undefined {
  for (const { name, inFlight } of index.classes) {
    const held = records.filter((one) => one.kind === "lease" || one.kind === "offer");
    const own = held.filter(({ charge }) => classOf(charge?.asked) === name);
    const slots = own.reduce((sum, { width }) => sum + width, 0);
    if (slots !== inFlight) return `${inFlight} slots of class ${name} are counted, ${slots} held`;
  }
  return undefined;
}

/** Records are compared by name, because their order has no meaning. */
export function imageDifference(a: BookImage, b: BookImage): string | undefined {
  if (!isDeepStrictEqual(a.head, b.head)) return `heads ${JSON.stringify(a.head)} and ${JSON.stringify(b.head)}`;
  const others = new Map(b.records.map((record) => [nameOf(record), record]));
  for (const record of a.records) {
    const other = others.get(nameOf(record));
    if (!isDeepStrictEqual(record, other)) return `records ${JSON.stringify(record)} and ${JSON.stringify(other)}`;
  }
  return a.records.length === b.records.length ? undefined : `${a.records.length} and ${b.records.length} records`;
}

/** The index is derived: it must equal an index that is built from the records, however the book got them. */
export function indexDifference(a: Book, b: Book): string | undefined {
  b.moveTo(a.now);
  b.index.useTime(...a.index.time);
  const sums = summary(a);
  const others = summary(b);
  for (const [name, value] of Object.entries(sums)) {
    const other = others[name];
    const areNumbers = typeof value === "number" && typeof other === "number";
    const isNear = areNumbers && Math.abs(value - other) <= ROUNDING * Math.max(1, Math.abs(value));
    if (value !== other && !isNear) return `${name}: ${value} and ${other}`;
  }
  const isMore = Object.keys(others).length > Object.keys(sums).length;
  return isMore ? "a bucket that the records have and the index lacks" : undefined;
}

/** Everything that the index answers and that does not depend on the order of equal things, or on the last bits of sums. */
function summary(book: Book): Record<string, number | string | undefined> {
  const { index } = book;
  const { endings, refills } = index;
  const flat: Record<string, number | string | undefined> = {
    probes: index.probes,
    inFlight: index.inFlight,
    widest: index.widths.widest,
    nextLease: endings.nextLease?.key,
    nextOffer: endings.nextOffer?.key,
    nextCooldown: endings.nextCooldown?.key,
    nextEnd: endings.nextEnd?.key,
    nextCoolAt: index.nextCoolAt,
    instances: [...index.instances].sort().join(),
    nextRefill: refills.next?.fullAt,
    fullAt: refills.fullAt,
    values: refills.values,
  };
  for (const { key } of book.all("waiter")) {
    const heldAt = index.heldAt(key);
    flat[`waiter ${key}`] = `${heldAt?.key} ${heldAt?.payableAt} ${endings.hasOffer(key)}`;
  }
  for (const { session, key } of book.all("lease")) flat[`session ${session}`] = endings.leaseOf(session)?.key ?? key;
  for (const one of index.classes) {
    const { activeWeight, demand, contendingWeight, contendingHeld } = one.ledger;
    const { pool, inFlight, waiting, lines, longestAway, resting } = one;
    const flags = `${one.ledger.isActive} ${lines} ${longestAway?.record.awayAt} ${resting.nextResting?.asOf}`;
    const sums = { activeWeight, demand, contendingWeight, contendingHeld, inFlight, waiting, pool: pool.size, flags };
    for (const [key, value] of Object.entries(sums)) flat[`class ${one.name}.${key}`] = value;
  }
  for (const { ofClass, use, waiting, passed } of index.ladder?.lines ?? []) {
    flat[`${ofClass} ${use.name} ${use.value}`] = `${use.inFlight} ${waiting.size} ${passed?.entry.record.key}`;
  }
  for (const line of index.lines) {
    const { name, weight, inFlight, usedMs, asOf, waiting, places, outsiders, parked, parkedPresent, limit } = line;
    const { heldElsewhere, coolsUntil, headWidth, charged } = line;
    const heldBy = index.heldBy(line.bucket);
    const numbers = { weight, inFlight, usedMs, asOf, waiting, places, outsiders, parked, parkedPresent, limit };
    const others = { heldElsewhere, heldBy, coolsUntil, headWidth, charged, head: line.head?.record.key };
    for (const [key, value] of Object.entries({ ...numbers, ...others })) flat[`${name}.${key}`] = value;
  }
  return flat;
}

function nameOf({ kind, key }: BookRecord): string {
  return `${kind} ${key}`;
}

/** The sum of fractions depends on the order of addition. */
const ROUNDING = 1e-9;
