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
    difference(cached, Book.of(kept.host, kept.tag, kept), summary) ??
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
  return difference(a, b, (book) => ({ ...summary(book), ...details(book) }));
}

type Answers = Record<string, number | string | undefined>;

function difference(a: Book, b: Book, answersOf: (book: Book) => Answers): string | undefined {
  b.moveTo(a.now);
  b.index.useTime(...a.index.time);
  const answers = answersOf(a);
  const others = answersOf(b);
  for (const [name, value] of Object.entries(answers)) {
    const other = others[name];
    const areNumbers = typeof value === "number" && typeof other === "number";
    const isNear = areNumbers && Math.abs(value - other) <= ROUNDING * Math.max(1, Math.abs(value));
    if (value !== other && !isNear) return `${name}: ${value} and ${other}`;
  }
  const isMore = Object.keys(others).length > Object.keys(answers).length;
  return isMore ? "a bucket that the records have and the index lacks" : undefined;
}

/** What the simulator compares after each step. */
function summary({ index }: Book): Answers {
  const flat: Answers = {
    probes: index.probes,
    nextLease: index.endings.nextLease?.key,
    nextOffer: index.endings.nextOffer?.lapsesAt,
    nextCooldown: index.endings.nextCooldown?.until,
    nextCoolAt: index.nextCoolAt,
    instances: [...index.instances].sort().join(),
  };
  for (const { name: ofClass, ledger, pool, inFlight, waiting } of index.classes) {
    const { activeWeight, demand, contendingWeight, contendingHeld } = ledger;
    const sums = { activeWeight, demand, contendingWeight, contendingHeld, inFlight, waiting, pool: pool.size };
    for (const [key, value] of Object.entries(sums)) flat[`class ${ofClass}.${key}`] = value;
  }
  for (const { ofClass, use, waiting, passed } of index.ladder?.lines ?? []) {
    flat[`${ofClass} ${use.name} ${use.value}`] = `${use.inFlight} ${waiting.size} ${passed?.entry.record.key}`;
  }
  for (const { name, weight, inFlight, usedMs, asOf, waiting, places, outsiders } of index.lines) {
    const numbers = { weight, inFlight, usedMs, asOf, waiting, places, outsiders };
    for (const [key, value] of Object.entries(numbers)) flat[`${name}.${key}`] = value;
  }
  return flat;
}

/** Everything else that the index answers and that does not depend on the order of equal things. */
function details(book: Book): Answers {
  const { index } = book;
  const { endings, refills } = index;
  const flat: Answers = {
    inFlight: index.inFlight,
    widest: index.widths.widest,
    offer: endings.nextOffer?.key,
    cooldown: endings.nextCooldown?.key,
    nextEnd: endings.nextEnd?.key,
    nextRefill: refills.next?.fullAt,
    fullAt: refills.fullAt,
    values: refills.values,
  };
  for (const { key } of book.all("waiter")) {
    const heldAt = index.heldAt(key);
    flat[`waiter ${key}`] = `${heldAt?.key} ${heldAt?.payableAt} ${endings.hasOffer(key)}`;
  }
  for (const { session, key } of book.all("lease")) flat[`session ${session}`] = endings.leaseOf(session)?.key ?? key;
  for (const { name, ledger, lines, longestAway, resting } of index.classes) {
    flat[`class ${name}.is`] = `${ledger.isActive} ${lines} ${longestAway?.record.awayAt} ${resting.nextResting?.asOf}`;
  }
  for (const line of index.lines) {
    const { name, bucket, parked, parkedPresent, limit, heldElsewhere, coolsUntil, headWidth, charged, head } = line;
    const numbers = { parked, parkedPresent, limit, heldElsewhere, coolsUntil, headWidth, charged };
    for (const [key, value] of Object.entries(numbers)) flat[`${name}.${key}`] = value;
    flat[`${name}.others`] = `${index.heldBy(bucket)} ${head?.record.key}`;
  }
  return flat;
}

function nameOf({ kind, key }: BookRecord): string {
  return `${kind} ${key}`;
}

/** The sum of fractions depends on the order of addition. */
const ROUNDING = 1e-9;
