import { DEFAULT_CLASS, type Demand } from "@slotkeeper/protocol";
import { IndexedHeap } from "slotkeeper/parts";
import type { RankedLine } from "../order/contract.ts";
import type { RateGroup } from "../order/slot-seconds.ts";
import type { WeightedLine } from "../order/weighted/numbers.ts";
import type { ClassIndex } from "./class-index.ts";
import type { Rung } from "./key-line.ts";
import type { AccountRecord, LeaseRecord, OfferRecord, WaiterRecord } from "./records.ts";

/**
 * A line is the waiters of one class and one bucket. Its name is the key of its account: the bucket, and before it the
 * class, unless that is the default. Neither has a line break.
 */
const BETWEEN = "\n";

export function nameOfLine(name: string, bucket: string): string {
  return name === DEFAULT_CLASS ? bucket : `${name}${BETWEEN}${bucket}`;
}

/** The line of a waiter. */
export function lineOfWaiter({ bucket, demand }: Pick<WaiterRecord, "bucket" | "demand">): string {
  return lineFor(bucket, demand);
}

/** The line that a lease or an offer was granted to. */
export function lineOfSlot({ bucket, charge }: Pick<LeaseRecord | OfferRecord, "bucket" | "charge">): string {
  return lineFor(bucket, charge?.asked);
}

function lineFor(bucket: string, demand: Demand | undefined): string {
  return demand?.class === undefined ? bucket : nameOfLine(demand.class, bucket);
}

export function partsOfLine(line: string): readonly [name: string, bucket: string] {
  const at = line.indexOf(BETWEEN);
  return at < 0 ? [DEFAULT_CLASS, line] : [line.slice(0, at), line.slice(at + 1)];
}

/** A waiter with its positions in the heaps of its line. */
export interface WaiterEntry {
  record: WaiterRecord;
  readonly line: Line;
  /** How many slots it needs. */
  width: number;
  /** A slot is offered to it. */
  isOffered: boolean;
  /** Outside the pool, and not waiting for a place, because its client is away or one of its keys has no room. */
  isParked: boolean;
  /** Its rungs on the ladder of keys, and the one at which it stands. */
  rungs: readonly Rung[];
  reached: number;
  readyIndex: number;
  youngIndex: number;
  outsideIndex: number;
  awayIndex: number;
  goneIndex: number;
  heldBackIndex: number;
}

/**
 * One line of one host, a bucket in one class, with everything that ranking, the waiter pool and the sums need. Without
 * classes it is the whole bucket. It is derived from the records, and can be derived again at any time. Only `Book` and its
 * indexes write to it.
 */
export class Line implements RankedLine {
  /** The name of the line. */
  readonly name: string;
  /** The name of the bucket. */
  readonly bucket: string;
  readonly ofClass: ClassIndex;
  account: AccountRecord | undefined;
  /** Its slots that direct SQL callers hold. */
  direct: readonly LeaseRecord[] | undefined;
  // As the order sees it: `usedMs` slot-milliseconds up to `asOf`, then `inFlight` more per millisecond.
  weight = 1;
  inFlight = 0;
  usedMs = 0;
  asOf = 0;
  headAt = 0;
  headKey = "";
  headWidth = 1;
  charged = 0;
  orderIndex = -1;
  rateGroup: RateGroup | undefined;
  weighted: WeightedLine | undefined;
  /** How many slots the bucket may have, by the policy with which the index was last read. */
  limit = 0;
  /** The slots that the bucket has in other classes. */
  heldElsewhere = 0;
  /** The lines of its bucket in all classes, with this one. Undefined: it is the only one. */
  siblings: readonly Line[] | undefined;
  /** The end of its cooldown. It may be over: then its record is about to be deleted. */
  coolsUntil: number | undefined;
  /** The slots that waiters inside the pool without an offer need. */
  waiting = 0;
  /** Waiters inside the pool whose client is present and whose keys have room, oldest first. */
  #ready: IndexedHeap<"readyIndex", WaiterEntry> | undefined;
  /** Waiters inside the pool, youngest first. */
  #young: IndexedHeap<"youngIndex", WaiterEntry> | undefined;
  /** Waiters outside the pool that wait for a place, oldest first. */
  #outside: IndexedHeap<"outsideIndex", WaiterEntry> | undefined;
  /** The number of waiters outside the pool whose client is away, or one of whose keys has no room. They wait for no place. */
  parked = 0;
  /** Of these, those whose client is present. A grant of the same decision may give their key room, and them a place. */
  parkedPresent = 0;
  /** It has changed, and is in no heap of the book until the index is next read. */
  isDirty = false;
  // Positions in the heaps of the book.
  largestIndex = -1;
  fewestIndex = -1;
  stuckIndex = -1;
  grantableIndex = -1;
  coolIndex = -1;
  turnIndex = -1;
  idleIndex = -1;
  restIndex = -1;
  // Its part of the sums in the ledger.
  addsWeight = 0;
  addsDemand = 0;
  addsContendingWeight = 0;
  addsContendingHeld = 0;

  constructor(name: string, bucket: string, ofClass: ClassIndex) {
    this.name = name;
    this.bucket = bucket;
    this.ofClass = ofClass;
  }

  get ready(): IndexedHeap<"readyIndex", WaiterEntry> {
    this.#ready ??= new IndexedHeap("readyIndex", isOlder);
    return this.#ready;
  }

  get young(): IndexedHeap<"youngIndex", WaiterEntry> {
    this.#young ??= new IndexedHeap("youngIndex", isYounger);
    return this.#young;
  }

  get outside(): IndexedHeap<"outsideIndex", WaiterEntry> {
    this.#outside ??= new IndexedHeap("outsideIndex", isOlder);
    return this.#outside;
  }

  /** Places in the pool. */
  get places(): number {
    return this.#young?.size ?? 0;
  }

  get outsiders(): number {
    return this.#outside?.size ?? 0;
  }

  get head(): WaiterEntry | undefined {
    return this.#ready?.peek();
  }

  get isActive(): boolean {
    return this.inFlight > 0 || this.waiting > 0;
  }

  /** Whether a waiter inside the pool, or a present one outside, may compete for a slot in this decision. */
  get isWanted(): boolean {
    return this.waiting + this.outsiders + this.parkedPresent > 0;
  }

  /** Layer 3 of the funnel: why the bucket itself may not get the slots that the oldest waiter here needs. */
  get obstacle(): "ip-limit" | "cooldown" | undefined {
    return this.obstacleFor(this.headWidth);
  }

  obstacleFor(width: number): "ip-limit" | "cooldown" | undefined {
    if (this.inFlight + this.heldElsewhere + width > this.limit) return "ip-limit";
    return this.coolsUntil === undefined ? undefined : "cooldown";
  }

  /** Whether its oldest waiter could be granted now, if it had a place and enough slots were free. */
  get isGrantable(): boolean {
    return this.obstacle === undefined;
  }

  /** The same for a waiter outside the pool. One that stands behind a waiter inside cannot be granted before it. */
  get isGrantableOutside(): boolean {
    const width = this.head === undefined ? this.#outside?.peek()?.width : undefined;
    return this.obstacleFor(width ?? this.headWidth) === undefined;
  }

  /** Whether it waits, and the bucket is below its limit. */
  get contends(): boolean {
    return this.waiting > 0 && this.inFlight + this.heldElsewhere < this.limit;
  }

  /** Its account has more than its use: numbers that are kept for an idle period. */
  get hasNumbers(): boolean {
    const { weighted, account } = this;
    return weighted !== undefined || account?.refusedAt !== undefined || account?.charged !== undefined;
  }

  /** No waiter and no slot. */
  get isIdle(): boolean {
    return this.inFlight === 0 && this.places + this.outsiders + this.parked === 0;
  }

  get isEmpty(): boolean {
    return this.account === undefined && this.isIdle;
  }
}

export function isOlder(a: WaiterEntry, b: WaiterEntry): boolean {
  return a.record.arrivedAt === b.record.arrivedAt
    ? a.record.key < b.record.key
    : a.record.arrivedAt < b.record.arrivedAt;
}

export function isYounger(a: WaiterEntry, b: WaiterEntry): boolean {
  return isOlder(b, a);
}
