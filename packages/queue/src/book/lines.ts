import { budgetOfOrder, DEFAULT_CLASS } from "@slotkeeper/protocol";
import { bucketLimit, type HostPolicy } from "../host-policy.ts";
import type { Order } from "../order/contract.ts";
import { orderOf } from "../order/order-of.ts";
import type { WeightedSettings } from "../order/weighted/numbers.ts";
import { SmallMap } from "../small-map.ts";
import { ClassIndex } from "./class-index.ts";
import type { Endings } from "./endings.ts";
import { Line, nameOfLine, partsOfLine } from "./line.ts";

/**
 * The lines of a host and its classes, with the heaps and sums that they are in. A line that changes leaves them, and
 * returns when they are next read, once for many changes. Derived from the records. Cost: O(log n) for each change.
 */
export class Lines {
  readonly #cooldowns: Pick<Endings, "cooldownOf">;
  readonly #lines = new SmallMap<string, Line>();
  readonly #default = new ClassIndex(DEFAULT_CLASS);
  /** The other classes that have lines. */
  #others: Map<string, ClassIndex> | undefined;
  /** All of them. Undefined: they have changed. */
  #classes: readonly ClassIndex[] | undefined;
  /** Lines that changed since they were last read. They are in no heap until then. */
  #dirty: Line[] = [];
  #policy: HostPolicy | undefined;
  #scheduler: WeightedSettings | undefined;

  constructor(cooldowns: Pick<Endings, "cooldownOf">) {
    this.#cooldowns = cooldowns;
  }

  /** The classes that have lines, and the default class, by name: the order of the records depends on the store. */
  get classes(): readonly ClassIndex[] {
    this.#classes ??= [this.#default, ...(this.#others?.values() ?? [])].sort((a, b) => (a.name < b.name ? -1 : 1));
    return this.#classes;
  }

  ofClass(name: string): ClassIndex | undefined {
    return name === DEFAULT_CLASS ? this.#default : this.#others?.get(name);
  }

  /** The order of the lines of a class. */
  orderOf(one: ClassIndex): Order {
    one.order ??= orderOf(one.name, this.#policy, this.#scheduler);
    return one.order;
  }

  all(): Iterable<Line> {
    return this.#lines.values();
  }

  get(name: string): Line | undefined {
    return this.#lines.get(name);
  }

  /** The lines of a bucket, one for each class. */
  ofBucket(bucket: string): Line[] {
    const own = this.#lines.get(bucket);
    const lines = own === undefined ? [] : [own];
    for (const name of this.#others?.keys() ?? []) {
      const line = this.#lines.get(nameOfLine(name, bucket));
      if (line !== undefined) lines.push(line);
    }
    return lines;
  }

  /** The slots of a bucket in all classes. */
  heldBy(bucket: string): number {
    if (this.#others === undefined) return this.#lines.get(bucket)?.inFlight ?? 0;
    return this.ofBucket(bucket).reduce((sum, { inFlight }) => sum + inFlight, 0);
  }

  usePolicy(policy: HostPolicy): void {
    // An order by a budget depends on the budgets, too.
    const isSame = policy.order === this.#policy?.order && budgetOfOrder(policy.order) === undefined;
    for (const line of this.#lines.values()) this.detach(line);
    this.#policy = policy;
    if (!isSame) this.#forgetOrders();
  }

  /** The settings of the weighted scheduler. Undefined: it is off. */
  useScheduler(settings: WeightedSettings | undefined): void {
    const { scheduler, pollIntervalMs } = this.#scheduler ?? {};
    if (settings?.scheduler === scheduler && settings?.pollIntervalMs === pollIntervalMs) return;
    for (const line of this.#lines.values()) this.detach(line);
    this.#scheduler = settings;
    this.#forgetOrders();
  }

  #forgetOrders(): void {
    for (const one of this.classes) one.order = undefined;
  }

  open(name: string): Line {
    let line = this.#lines.get(name);
    if (line === undefined) {
      const [ofClass, bucket] = partsOfLine(name);
      line = new Line(name, bucket, this.#openClass(ofClass));
      line.ofClass.lines++;
      if (this.#others !== undefined) connect(line, this.ofBucket(bucket));
      this.#lines.set(name, line);
    }
    return line;
  }

  #openClass(name: string): ClassIndex {
    const one = this.ofClass(name) ?? new ClassIndex(name);
    if (one !== this.#default) {
      this.#others ??= new Map();
      this.#others.set(name, one);
      this.#classes = undefined;
    }
    return one;
  }

  /** Call before anything about the line changes. */
  detach(line: Line): void {
    if (line.isDirty) return;
    line.isDirty = true;
    this.#dirty.push(line);
    const { order, resting, pool } = line.ofClass;
    order?.remove(line);
    resting.remove(line);
    pool.leave(line);
  }

  /** The slots of the line are about to change: its bucket has less or more room in all classes. */
  detachBucket(line: Line): void {
    this.detach(line);
    if (line.siblings !== undefined) for (const one of line.siblings) this.detach(one);
  }

  /** Call before the heaps and sums are read. */
  attach(): void {
    if (this.#dirty.length === 0) return;
    const dirty = this.#dirty;
    this.#dirty = [];
    for (const line of dirty) this.#attach(line);
  }

  #attach(line: Line): void {
    const { head, ofClass } = line;
    line.isDirty = false;
    if (head !== undefined) {
      line.headAt = head.record.arrivedAt;
      line.headKey = head.record.key;
    }
    line.headWidth = head?.width ?? 1;
    line.limit = this.#policy === undefined ? 0 : bucketLimit(this.#policy, line.bucket);
    line.coolsUntil = this.#cooldowns.cooldownOf(line.bucket)?.until;
    line.heldElsewhere = heldElsewhere(line);
    ofClass.pool.enter(line);
    ofClass.ledger.recount(line);
    if (line.coolsUntil !== undefined && line.isWanted) ofClass.resting.cools(line);
    if (head !== undefined) this.orderOf(ofClass).add(line);
    else if (line.account !== undefined && !line.isActive) ofClass.resting.rests(line);
    if (line.isEmpty) this.#drop(line);
  }

  #drop(line: Line): void {
    const { name, ofClass } = line;
    this.#lines.delete(name);
    connect(line, []);
    if (--ofClass.lines > 0 || ofClass === this.#default) return;
    this.#others?.delete(ofClass.name);
    this.#classes = undefined;
  }
}

/** Makes the line one of the lines of its bucket, which has these others. With none, the line leaves them. */
function connect(line: Line, others: readonly Line[]): void {
  const left = line.siblings?.filter((one) => one !== line) ?? [];
  for (const one of left) one.siblings = left.length > 1 ? left : undefined;
  const all = others.length > 0 ? [...others, line] : undefined;
  line.siblings = undefined;
  for (const one of all ?? []) one.siblings = all;
}

/** The slots of its bucket in other classes. */
function heldElsewhere({ siblings, inFlight }: Line): number {
  let held = 0;
  if (siblings !== undefined) for (const one of siblings) held += one.inFlight;
  return siblings === undefined ? 0 : held - inFlight;
}
