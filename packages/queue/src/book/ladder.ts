import {
  BUCKET_KEY,
  enforcedSlotsOf,
  holdsBack,
  type KeyPolicy,
  type KeyValues,
  keyLimitsOf,
  SHARED_BUCKET,
} from "@slotkeeper/protocol";
import { IndexedHeap } from "slotkeeper/parts";
import { isOlder, type WaiterEntry } from "./bucket.ts";
import type { WaiterRecord } from "./records.ts";

/**
 * The keys of a host, as a ladder that each present waiter climbs before it may have a place in the pool: one rung for
 * each of its keys, in the order of the configuration. At a rung, the waiters with the same value stand in one line.
 *
 * LADDER1 Only the oldest of a line moves on, and only while the value has room for it: its slots and its budgets. The
 *   others stay behind it until it is granted or leaves. So narrow requests cannot starve a wide one of the same value.
 * LADDER2 It reserves nothing. If the room is gone before it is granted, it steps back to its line.
 * LADDER3 A waiter at a rung has no place in the pool. So those that could not be granted never hide one that could.
 * LADDER4 What is derived depends on the records and the time alone, not on the order of events.
 * LADDER5 A value without limits, or with all of them in shadow mode, has no rung: its waiters pass it in any order.
 * Cost: O(log n) for each rung of a waiter that changes; a grant moves at most one waiter per rung. Nothing is searched,
 * except while more values have spent budgets than the host keeps (`budgets.ts`): then their lines are checked together.
 */

type Asking = Pick<WaiterRecord, "bucket" | "demand">;

/** One waiter at one rung. */
export interface Rung {
  readonly entry: WaiterEntry;
  readonly line: KeyLine;
  rungIndex: number;
}

/** The waiters with one value of a key, and the slots that its requests hold. */
export class KeyLine {
  readonly name: string;
  readonly value: string;
  readonly waiting = new IndexedHeap<"rungIndex", Rung>("rungIndex", standsBefore);
  /** Undefined: the host does not have this key any more. */
  key: KeyPolicy | undefined;
  level = -1;
  inFlight = 0;
  /** How many waiters have this value, at any rung. */
  climbers = 0;
  /** The oldest, if it has moved on. */
  passed: Rung | undefined;
  /** When the oldest may move on or leave, without another event. */
  wakeAt = Number.POSITIVE_INFINITY;
  isDirty = false;
  wakeIndex = -1;

  constructor(name: string, value: string) {
    this.name = name;
    this.value = value;
  }

  get front(): WaiterRecord | undefined {
    return this.waiting.peek()?.entry.record;
  }

  hasSlots(width: number): boolean {
    return this.key === undefined || this.inFlight + width <= enforcedSlotsOf(this.key, this.value);
  }
}

/** What the ladder needs from the book, and what it reports to the index of waiters. */
export interface Climbers {
  /** When the budgets of the value can pay for the waiter; 0: now. */
  payableAt(line: KeyLine, waiter: WaiterRecord): number;
  /** The waiter has passed its last rung. */
  through(entry: WaiterEntry): void;
  /** It had, and has no room any more. */
  steppedBack(entry: WaiterEntry): void;
}

/** Where a waiter stands. */
export interface HeldAt {
  readonly key: string;
  /** When its own budgets suffice, if it lacks nothing else. */
  readonly payableAt: number | undefined;
}

export class Ladder {
  readonly #climbers: Climbers;
  #keys: readonly KeyPolicy[] | undefined;
  readonly #lines = new Map<string, KeyLine>();
  /** Lines that changed since the ladder was last read, by level. */
  #dirty: KeyLine[][] = [];
  /** Lines whose oldest waits, the one that may go on first. */
  readonly #waking = new IndexedHeap<"wakeIndex", KeyLine>("wakeIndex", (a, b) => a.wakeAt < b.wakeAt);
  #now = Number.NEGATIVE_INFINITY;
  #collectMs = 0;

  constructor(climbers: Climbers) {
    this.#climbers = climbers;
  }

  get lines(): Iterable<KeyLine> {
    return this.#lines.values();
  }

  /** When a waiter that is first in its line may move on or leave. */
  get nextAt(): number | undefined {
    return this.#waking.peek()?.wakeAt;
  }

  /** The first of a line that waits although its deadline has passed. */
  get overdue(): WaiterRecord | undefined {
    const front = this.#waking.peek()?.front;
    return front !== undefined && front.deadlineAt <= this.#now ? front : undefined;
  }

  /** The waiters must leave before, and enter again after this. */
  useKeys(keys: readonly KeyPolicy[] | undefined): void {
    this.#keys = keys;
    this.#dirty = [];
    for (const line of this.#lines.values()) {
      line.isDirty = false;
      this.#find(line);
      this.#changed(line);
    }
  }

  useTime(now: number, collectMs: number): void {
    const isBack = now < this.#now || collectMs !== this.#collectMs;
    this.#now = now;
    this.#collectMs = collectMs;
    if (isBack) this.changeAll();
    for (let line = this.#waking.peek(); line !== undefined && line.wakeAt <= now; line = this.#waking.peek())
      this.#changed(line);
  }

  /** A lease or an offer of these keys begins or ends. */
  hold(keys: KeyValues, by: number): void {
    for (const [name, value] of Object.entries(keys)) {
      const line = this.#lineOf(name, value);
      line.inFlight += by;
      this.#changed(line);
    }
  }

  /** Whether leases and offers of these keys have more slots than a limit that was lowered since. */
  isOver(keys: KeyValues = {}): boolean {
    return Object.entries(keys).some(([name, value]) => this.#lines.get(lineId(name, value))?.hasSlots(0) === false);
  }

  /** The budgets of a value have changed. `id`: as `tenant acme`. */
  change(id: string): void {
    const line = this.#lines.get(id);
    if (line !== undefined) this.#changed(line);
  }

  changeAll(): void {
    for (const line of this.#lines.values()) this.#changed(line);
  }

  /** Whether the waiter may have to wait for keys of the host. */
  concerns(record: Asking): boolean {
    return this.#keys?.some((key) => rungValue(key, record) !== undefined) === true;
  }

  /** The keys in shadow mode that would hold the request back for their slots, or refuse it because it lacks them. */
  shortOf(record: Asking, width: number): string[] {
    const short = (this.#keys ?? []).filter((key) => {
      if (key.isShadow !== true) return false;
      const value = valueOf(key, record);
      if (value === undefined) return key.isRequired === true;
      const { inFlight = 0 } = this.#lines.get(lineId(key.name, value)) ?? {};
      return inFlight + width > (keyLimitsOf(key, value).slots ?? Number.POSITIVE_INFINITY);
    });
    return short.map(({ name }) => `key:${name}`);
  }

  /** Whether all its keys have room for a waiter, if no other waits. */
  admits(record: WaiterRecord, width: number): boolean {
    return (this.#keys ?? []).every((key) => {
      const value = valueOf(key, record);
      if (value === undefined) return true;
      const line = this.#lineOf(key.name, value);
      const isAdmitted = line.hasSlots(width) && this.#climbers.payableAt(line, record) === 0;
      this.#forget(line);
      return isAdmitted;
    });
  }

  enter(entry: WaiterEntry): void {
    const { record } = entry;
    entry.rungs = (this.#keys ?? []).flatMap((key) => {
      const value = rungValue(key, record);
      return value === undefined ? [] : [{ entry, line: this.#lineOf(key.name, value), rungIndex: -1 }];
    });
    for (const { line } of entry.rungs) line.climbers++;
    this.#stand(entry, 0);
  }

  leave(entry: WaiterEntry): void {
    for (const rung of entry.rungs) {
      this.#leaveRung(rung);
      rung.line.climbers--;
      this.#forget(rung.line);
    }
    entry.rungs = NO_RUNGS;
    entry.reached = 0;
  }

  /** The key at which the waiter stands. Undefined: it has passed all, or is not on the ladder. */
  heldAt(entry: WaiterEntry): HeldAt | undefined {
    const rung = entry.rungs[entry.reached];
    if (rung === undefined) return undefined;
    const { line } = rung;
    const isNext = line.waiting.peek() === rung && line.hasSlots(entry.width);
    return {
      key: line.name,
      payableAt: isNext ? this.#climbers.payableAt(line, entry.record) : undefined,
    };
  }

  /** Brings the ladder up to date. A line affects only later rungs, so one pass is enough. */
  settle(): void {
    for (let level = 0; level < this.#dirty.length; level++) {
      const lines = this.#dirty[level] ?? [];
      for (let line = lines.pop(); line !== undefined; line = lines.pop()) {
        line.isDirty = false;
        this.#settleLine(line);
        this.#forget(line);
      }
    }
  }

  /** LADDER1, LADDER2. */
  #settleLine(line: KeyLine): void {
    const front = line.waiting.peek();
    const next = front !== undefined && this.#hasRoom(line, front) ? front : undefined;
    if (next === line.passed) return;
    const { passed } = line;
    line.passed = next;
    if (passed !== undefined) this.#stepBack(passed);
    if (next !== undefined) this.#stand(next.entry, next.entry.rungs.indexOf(next) + 1);
  }

  /** If not, notes when this may change. */
  #hasRoom(line: KeyLine, { entry }: Rung): boolean {
    const { deadlineAt, awayAt = Number.POSITIVE_INFINITY } = entry.record;
    const payableAt = line.hasSlots(entry.width)
      ? this.#climbers.payableAt(line, entry.record)
      : Number.POSITIVE_INFINITY;
    if (payableAt === 0) return true;
    line.wakeAt = Math.min(payableAt, deadlineAt, awayAt + this.#collectMs);
    this.#waking.push(line);
    return false;
  }

  #stand(entry: WaiterEntry, at: number): void {
    entry.reached = at;
    const rung = entry.rungs[at];
    if (rung === undefined) this.#climbers.through(entry);
    else {
      rung.line.waiting.push(rung);
      this.#changed(rung.line);
    }
  }

  #stepBack(rung: Rung): void {
    const { entry } = rung;
    const at = entry.rungs.indexOf(rung);
    if (entry.reached === entry.rungs.length) this.#climbers.steppedBack(entry);
    for (const later of entry.rungs.slice(at + 1)) this.#leaveRung(later);
    entry.reached = at;
  }

  #leaveRung(rung: Rung): void {
    const { line } = rung;
    if (rung.rungIndex < 0) return;
    line.waiting.remove(rung);
    if (line.passed === rung) line.passed = undefined;
    this.#changed(line);
  }

  #changed(line: KeyLine): void {
    this.#waking.remove(line);
    if (line.isDirty) return;
    if (line.level < 0) {
      this.#forget(line);
      return;
    }
    line.isDirty = true;
    (this.#dirty[line.level] ??= []).push(line);
  }

  #lineOf(name: string, value: string): KeyLine {
    const id = lineId(name, value);
    let line = this.#lines.get(id);
    if (line === undefined) {
      line = new KeyLine(name, value);
      this.#find(line);
      this.#lines.set(id, line);
    }
    return line;
  }

  #find(line: KeyLine): void {
    line.level = this.#keys?.findIndex(({ name }) => name === line.name) ?? -1;
    line.key = this.#keys?.[line.level];
  }

  #forget(line: KeyLine): void {
    if (line.climbers === 0 && line.inFlight === 0 && !line.isDirty) this.#lines.delete(lineId(line.name, line.value));
  }
}

export const NO_RUNGS: readonly Rung[] = [];

/** The value of a request for a key. Undefined: the key does not limit it. */
export function valueOf({ name }: KeyPolicy, { bucket, demand }: Asking): string | undefined {
  if (name === BUCKET_KEY) return bucket === SHARED_BUCKET ? undefined : bucket;
  const keys = demand?.keys;
  return keys !== undefined && Object.hasOwn(keys, name) ? keys[name] : undefined;
}

/** LADDER5. Undefined: the request has no rung of this key. */
function rungValue(key: KeyPolicy, asking: Asking): string | undefined {
  const value = valueOf(key, asking);
  return value !== undefined && holdsBack(key, value) ? value : undefined;
}

function lineId(name: string, value: string): string {
  return `${name} ${value}`;
}

function standsBefore(a: Rung, b: Rung): boolean {
  return isOlder(a.entry, b.entry);
}
