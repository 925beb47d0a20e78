import { type KeyPolicy, type KeyValues, keyLimitsOf } from "@slotkeeper/protocol";
import { IndexedHeap } from "slotkeeper/parts";
import { type Asking, KeyLine, KeyUse, NO_RUNGS, type Rung, rungValue, valueOf } from "./key-line.ts";
import type { WaiterEntry } from "./line.ts";
import type { WaiterRecord } from "./records.ts";

/**
 * The keys of a host, as a ladder that each present waiter climbs before it may have a place in the pool: one rung for
 * each of its keys, in the order of the configuration. At a rung, the waiters with the same value stand in lines, one for
 * each class.
 *
 * LADDER1 Only the oldest of a line moves on, and only while the value has room for it: its slots and its budgets. The
 *   others stay behind it until it is granted or leaves. So narrow requests cannot starve a wide one of the same value.
 * LADDER2 It reserves nothing. If the room is gone before it is granted, because another class took it, it steps back to its
 *   line.
 * LADDER3 A waiter at a rung has no place in the pool. So those that could not be granted never hide one that could.
 * LADDER4 What is derived depends on the records and the time alone, not on the order of events.
 * LADDER5 A value without limits, or with all of them in shadow mode, has no rung: its waiters pass it in any order.
 * Cost: O(log n) for each rung of a waiter that changes; a grant moves at most one waiter per rung. Nothing is searched,
 * except while more values have spent budgets than the host keeps (`budgets.ts`): then their lines are checked together.
 */

/** The book, which has the budgets. */
export interface Payer {
  /** When the budgets of the value can pay for the waiter; 0: now. */
  payableAt(use: KeyUse, waiter: WaiterRecord): number;
}

/** What the ladder needs from the book, and what it reports to the index of waiters. */
export interface Climbers extends Payer {
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

/** The lines of all keys of a host. */
export class Ladder {
  readonly #climbers: Climbers;
  #keys: readonly KeyPolicy[] | undefined;
  /** By the name of the key, then by value. A name of both would be a new string for each change. */
  readonly #uses = new Map<string, Map<string, KeyUse>>();
  /** Lines that changed since the ladder was last read, by level. */
  #dirty: KeyLine[][] = [];
  /** Lines whose oldest waits, the one that may go on first. */
  readonly #waking = new IndexedHeap<"wakeIndex", KeyLine>("wakeIndex", (a, b) => a.wakeAt < b.wakeAt);
  #now = Number.NEGATIVE_INFINITY;
  #collectMs = 0;

  constructor(climbers: Climbers) {
    this.#climbers = climbers;
  }

  get lines(): readonly KeyLine[] {
    return this.#allUses().flatMap(({ lines }) => [...lines.values()]);
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
    for (const use of this.#allUses()) this.#find(use);
    for (const line of this.lines) {
      line.isDirty = false;
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
    for (const name of Object.keys(keys)) {
      const use = this.#useOf(name, keys[name] as string);
      use.inFlight += by;
      for (const line of use.lines.values()) this.#changed(line);
      this.#forget(use);
    }
  }

  /** Whether leases and offers of these keys have more slots than a limit that was lowered since. */
  isOver(keys: KeyValues = {}): boolean {
    return Object.entries(keys).some(([name, value]) => this.#uses.get(name)?.get(value)?.hasSlots(0) === false);
  }

  /** The budgets of a value have changed. `id`: as `tenant acme`. */
  change(id: string): void {
    const end = id.indexOf(" ");
    const use = this.#uses.get(id.slice(0, end))?.get(id.slice(end + 1));
    for (const line of use?.lines.values() ?? []) this.#changed(line);
  }

  changeAll(): void {
    for (const line of this.lines) this.#changed(line);
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
      const { inFlight = 0 } = this.#uses.get(key.name)?.get(value) ?? {};
      return inFlight + width > (keyLimitsOf(key, value).slots ?? Number.POSITIVE_INFINITY);
    });
    return short.map(({ name }) => `key:${name}`);
  }

  /** Whether all its keys have room for a waiter, if no other waits. */
  admits(record: WaiterRecord, width: number): boolean {
    return (this.#keys ?? []).every((key) => {
      const value = valueOf(key, record);
      if (value === undefined) return true;
      const use = this.#useOf(key.name, value);
      const isAdmitted = use.hasSlots(width) && this.#climbers.payableAt(use, record) === 0;
      this.#forget(use);
      return isAdmitted;
    });
  }

  enter(entry: WaiterEntry): void {
    const { record } = entry;
    const { name: ofClass } = entry.line.ofClass;
    const rungs: Rung[] = [];
    for (const key of this.#keys ?? []) {
      const value = rungValue(key, record);
      if (value === undefined) continue;
      const line = this.#lineOf(key.name, value, ofClass);
      line.climbers++;
      rungs.push({ entry, line, rungIndex: -1 });
    }
    entry.rungs = rungs;
    this.#stand(entry, 0);
  }

  leave(entry: WaiterEntry): void {
    for (const rung of entry.rungs) {
      this.#leaveRung(rung);
      rung.line.climbers--;
      this.#forgetLine(rung.line);
    }
    entry.rungs = NO_RUNGS;
    entry.reached = 0;
  }

  /** The key at which the waiter stands. Undefined: it has passed all, or is not on the ladder. */
  heldAt(entry: WaiterEntry): HeldAt | undefined {
    const rung = entry.rungs[entry.reached];
    if (rung === undefined) return undefined;
    const { line } = rung;
    const isNext = line.waiting.peek() === rung && line.use.hasSlots(entry.width);
    return {
      key: line.use.name,
      payableAt: isNext ? this.#climbers.payableAt(line.use, entry.record) : undefined,
    };
  }

  /** Brings the ladder up to date. A line affects only later rungs, so one pass is enough. */
  settle(): void {
    for (let level = 0; level < this.#dirty.length; level++) {
      const lines = this.#dirty[level] ?? [];
      for (let line = lines.pop(); line !== undefined; line = lines.pop()) {
        line.isDirty = false;
        this.#settleLine(line);
        this.#forgetLine(line);
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
    const payableAt = line.use.hasSlots(entry.width)
      ? this.#climbers.payableAt(line.use, entry.record)
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
    const { level } = line.use;
    if (level < 0) {
      this.#forgetLine(line);
      return;
    }
    line.isDirty = true;
    (this.#dirty[level] ??= []).push(line);
  }

  #lineOf(name: string, value: string, ofClass: string): KeyLine {
    const use = this.#useOf(name, value);
    const line = use.lines.get(ofClass) ?? new KeyLine(use, ofClass);
    use.lines.set(ofClass, line);
    return line;
  }

  #useOf(name: string, value: string): KeyUse {
    const uses = this.#uses.get(name) ?? new Map<string, KeyUse>();
    let use = uses.get(value);
    if (use === undefined) {
      use = new KeyUse(name, value);
      this.#find(use);
      this.#uses.set(name, uses.set(value, use));
    }
    return use;
  }

  #allUses(): KeyUse[] {
    return Array.from(this.#uses.values()).flatMap((uses) => [...uses.values()]);
  }

  #find(use: KeyUse): void {
    use.level = this.#keys?.findIndex(({ name }) => name === use.name) ?? -1;
    use.key = this.#keys?.[use.level];
  }

  #forgetLine({ use, ofClass, climbers, isDirty }: KeyLine): void {
    if (climbers > 0 || isDirty) return;
    use.lines.delete(ofClass);
    this.#forget(use);
  }

  #forget({ name, value, inFlight, lines }: KeyUse): void {
    if (inFlight === 0 && lines.size === 0) this.#uses.get(name)?.delete(value);
  }
}
