import { type KeyPolicy, type KeyValues, widthOf } from "@slotkeeper/protocol";
import { IndexedHeap } from "slotkeeper/parts";
import { SmallMap } from "../small-map.ts";
import type { Endings } from "./endings.ts";
import { NO_RUNGS } from "./key-line.ts";
import { type HeldAt, Ladder, type Payer } from "./ladder.ts";
import type { Widths } from "./ledger.ts";
import { isYounger, type Line, lineOfWaiter, type WaiterEntry } from "./line.ts";
import type { Lines } from "./lines.ts";
import type { AbsenceRecord, WaiterRecord } from "./records.ts";

/**
 * The waiters of a host in the heaps of their lines, inside or outside the pool. A waiter inside is ready for a slot
 * unless it has an offer, its instance is absent, its client is gone (away for `collectMs`), or one of its keys has
 * no room (`ladder.ts`). Derived from the records and the time. Cost: O(log n) for each change of a waiter.
 */
export class WaiterIndex {
  readonly #lines: Lines;
  readonly #widths: Widths;
  readonly #offers: Pick<Endings, "hasOffer">;
  readonly #payer: Payer;
  readonly #waiters = new SmallMap<string, WaiterEntry>();
  readonly #byInstance = new SmallMap<string, number>();
  #absent: Set<string> | undefined;
  #time = { now: Number.NEGATIVE_INFINITY, collectMs: 0 };
  /** Created when first needed: most hosts have no keys. */
  #ladder: Ladder | undefined;

  constructor(lines: Lines, widths: Widths, offers: Pick<Endings, "hasOffer">, payer: Payer) {
    this.#lines = lines;
    this.#widths = widths;
    this.#offers = offers;
    this.#payer = payer;
  }

  get ladder(): Ladder | undefined {
    return this.#ladder;
  }

  /** Slots of a key begin or end. */
  hold(keys: KeyValues, by: number): void {
    this.#ladderOf().hold(keys, by);
  }

  /** Instances that have waiters here. */
  get instances(): Iterable<string> {
    return this.#byInstance.keys();
  }

  heldAt(session: string): HeldAt | undefined {
    const entry = this.#waiters.get(session);
    return entry && this.#ladder?.heldAt(entry);
  }

  useKeys(keys: readonly KeyPolicy[] | undefined): void {
    for (const entry of this.#waiters.values()) this.#replace(entry, undefined);
    this.#ladderOf().useKeys(keys);
    for (const entry of this.#waiters.values()) this.#replace(entry, entry.record);
  }

  /** Clients that have been away for `collectMs` are gone; also fewer than before, if the time goes back or `collectMs` grows. */
  useTime(now: number, collectMs: number): void {
    const isBack = now < this.#time.now || collectMs > this.#time.collectMs;
    this.#time = { now, collectMs };
    this.#ladder?.useTime(now, collectMs);
    if (isBack)
      for (const entry of this.#waiters.values()) if (entry.goneIndex >= 0) this.#replace(entry, entry.record);
    for (const { away } of this.#lines.classes)
      for (let entry = away?.peek(); entry !== undefined && this.#isGone(entry); entry = away?.peek())
        this.#replace(entry, entry.record);
  }

  set(before: WaiterRecord | undefined, after: WaiterRecord | undefined): void {
    const key = (before ?? after)?.key ?? "";
    if (before?.instance !== after?.instance) {
      this.#count(before?.instance, -1);
      this.#count(after?.instance, 1);
    }
    let entry = this.#waiters.get(key);
    const name = after && lineOfWaiter(after);
    if (entry !== undefined && name === entry.line.name) {
      if (after !== undefined && this.#getsPlace(entry, after)) this.#enterPool(entry, after);
      else this.#replace(entry, after);
      return;
    }
    if (entry !== undefined) {
      this.#waiters.delete(key);
      this.#replace(entry, undefined);
    }
    if (after === undefined || name === undefined) return;
    entry = newEntry(after, this.#lines.open(name));
    this.#waiters.set(key, entry);
    this.#replace(entry, after);
  }

  setAbsence(before: AbsenceRecord | undefined, after: AbsenceRecord | undefined): void {
    const instance = (before ?? after)?.key ?? "";
    this.#absent ??= new Set();
    if (after !== undefined) this.#absent.add(instance);
    else this.#absent.delete(instance);
    for (const entry of this.#waiters.values()) {
      if (entry.record.instance === instance) this.#replace(entry, entry.record);
    }
  }

  /** An offer for the session was made or removed. */
  offerChanged(session: string): void {
    const entry = this.#waiters.get(session);
    if (entry !== undefined) this.#replace(entry, entry.record);
  }

  #count(instance: string | undefined, by: 1 | -1): void {
    if (instance === undefined) return;
    const count = (this.#byInstance.get(instance) ?? 0) + by;
    if (count > 0) this.#byInstance.set(instance, count);
    else this.#byInstance.delete(instance);
  }

  /** Whether a waiter that waits for a place gets one, and nothing else changes. */
  #getsPlace(entry: WaiterEntry, after: WaiterRecord): boolean {
    const { record: before, line, isOffered } = entry;
    if (!after.isInside || !line.outside.has(entry) || isOffered || this.#isAbsent(entry)) return false;
    const isSame = before.arrivedAt === after.arrivedAt && before.deadlineAt === after.deadlineAt;
    return isSame && before.instance === after.instance && after.awayAt === undefined && before.demand === after.demand;
  }

  /** It keeps its rungs, and need not climb the ladder again. */
  #enterPool(entry: WaiterEntry, after: WaiterRecord): void {
    const { line } = entry;
    this.#lines.detach(line);
    line.outside.remove(entry);
    entry.record = after;
    line.young.push(entry);
    this.#widths.add(entry.width, 1);
    addWaiting(line, entry.width);
    line.ready.push(entry);
  }

  #replace(entry: WaiterEntry, after: WaiterRecord | undefined): void {
    const { line } = entry;
    this.#lines.detach(line);
    if (line.young.has(entry)) this.#widths.add(entry.width, -1);
    if (line.young.has(entry) && !entry.isOffered) addWaiting(line, -entry.width);
    line.ready.remove(entry);
    line.young.remove(entry);
    line.outside.remove(entry);
    this.#ladder?.leave(entry);
    const { heldBack, away, gone } = line.ofClass;
    heldBack?.remove(entry);
    away?.remove(entry);
    gone?.remove(entry);
    this.#unpark(entry);
    if (after !== undefined) this.#place(entry, after);
  }

  #place(entry: WaiterEntry, after: WaiterRecord): void {
    const { line } = entry;
    entry.record = after;
    entry.width = widthOf(after.demand);
    entry.isOffered = this.#offers.hasOffer(after.key);
    if (!after.isInside) {
      this.#placeOutside(entry);
      return;
    }
    line.young.push(entry);
    this.#widths.add(entry.width, 1);
    if (entry.isOffered) return;
    addWaiting(line, entry.width);
    const { ofClass } = line;
    if (this.#isGone(entry)) {
      ofClass.gone ??= new IndexedHeap("goneIndex", isLongerAway);
      ofClass.gone.push(entry);
      return;
    }
    if (after.awayAt !== undefined) {
      ofClass.away ??= new IndexedHeap("awayIndex", isLongerAway);
      ofClass.away.push(entry);
    }
    if (!this.#isAbsent(entry)) this.#climb(entry);
  }

  #isAbsent({ record }: WaiterEntry): boolean {
    return this.#absent?.has(record.instance) === true;
  }

  #ladderOf(): Ladder {
    if (this.#ladder === undefined) {
      this.#ladder = new Ladder({
        payableAt: (use, waiter) => this.#payer.payableAt(use, waiter),
        through: (entry) => this.#through(entry),
        steppedBack: (entry) => this.#steppedBack(entry),
      });
      this.#ladder.useTime(this.#time.now, this.#time.collectMs);
    }
    return this.#ladder;
  }

  /** Until it is through. Most waiters are at once. */
  #climb(entry: WaiterEntry): void {
    if (this.#ladder?.concerns(entry.record) === true) {
      this.#holdBack(entry);
      this.#ladder.enter(entry);
    } else this.#through(entry);
  }

  #through(entry: WaiterEntry): void {
    const { line } = entry;
    this.#lines.detach(line);
    line.ofClass.heldBack?.remove(entry);
    this.#unpark(entry);
    if (entry.record.isInside) line.ready.push(entry);
    else line.outside.push(entry);
  }

  #steppedBack(entry: WaiterEntry): void {
    const { line } = entry;
    this.#lines.detach(line);
    line.ready.remove(entry);
    line.outside.remove(entry);
    this.#holdBack(entry);
  }

  #holdBack(entry: WaiterEntry): void {
    if (!entry.record.isInside) {
      this.#park(entry);
      return;
    }
    const { ofClass } = entry.line;
    ofClass.heldBack ??= new IndexedHeap("heldBackIndex", isYounger);
    ofClass.heldBack.push(entry);
  }

  #park(entry: WaiterEntry): void {
    entry.isParked = true;
    this.#countParked(entry, 1);
  }

  #unpark(entry: WaiterEntry): void {
    if (entry.isParked) this.#countParked(entry, -1);
    entry.isParked = false;
  }

  #countParked({ line, record }: WaiterEntry, by: 1 | -1): void {
    line.parked += by;
    if (record.awayAt === undefined) line.parkedPresent += by;
  }

  #isGone({ record: { awayAt } }: WaiterEntry): boolean {
    const { now, collectMs } = this.#time;
    return awayAt !== undefined && awayAt <= now - collectMs;
  }

  /**
   * WPOOL4: only a waiter whose client is present waits for a place. One with an offer has passed its keys: if it stood there
   * again, it would hold back a younger one, take its place, and lose it to that one (WPOOL5) without end.
   */
  #placeOutside(entry: WaiterEntry): void {
    const { record } = entry;
    const isOffLadder = (entry.isOffered || this.#isAbsent(entry)) && this.#ladder?.concerns(record) === true;
    if (record.awayAt === undefined && !isOffLadder) this.#climb(entry);
    else this.#park(entry);
  }
}

function newEntry(record: WaiterRecord, line: Line): WaiterEntry {
  return {
    record,
    line,
    width: 1,
    isOffered: false,
    isParked: false,
    rungs: NO_RUNGS,
    reached: 0,
    readyIndex: -1,
    youngIndex: -1,
    outsideIndex: -1,
    awayIndex: -1,
    goneIndex: -1,
    heldBackIndex: -1,
  };
}

function addWaiting(line: Line, by: number): void {
  line.waiting += by;
  line.ofClass.waiting += by;
}

function isLongerAway(a: WaiterEntry, b: WaiterEntry): boolean {
  const [awayA, awayB] = [a.record.awayAt ?? 0, b.record.awayAt ?? 0];
  return awayA === awayB ? a.record.key < b.record.key : awayA < awayB;
}
