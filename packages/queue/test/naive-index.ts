import {
  BUCKET_KEY,
  classOf,
  enforcedSlotsOf,
  holdsBack,
  type KeyPolicy,
  keyLimitsOf,
  SHARED_BUCKET,
  widthOf,
} from "@slotkeeper/protocol";
import type { LeaseRecord, OfferRecord, WaiterRecord } from "@slotkeeper/queue";
import { type Book, keyAccounts, keyOfAccount } from "@slotkeeper/queue/internals";
import { newLevel, payableAt } from "slotkeeper/parts";

type Slot = LeaseRecord | OfferRecord;
type Asking = Pick<WaiterRecord, "bucket" | "demand">;
type LineName = { readonly ofClass: string; readonly bucket: string };

interface LineAnswers {
  readonly places: number;
  readonly youngest: string | undefined;
  readonly waiting: number;
  readonly head: string | undefined;
  readonly outsiders: number;
  readonly oldestOutside: string | undefined;
  readonly parked: number;
  readonly parkedPresent: number;
  readonly inFlight: number;
  readonly isGrantable: boolean;
  readonly isGrantableOutside: boolean;
}

const oldestFirst = (a: WaiterRecord, b: WaiterRecord) => a.arrivedAt - b.arrivedAt || (a.key < b.key ? -1 : 1);
const sum = (numbers: readonly number[]) => numbers.reduce((all, one) => all + one, 0);
const least = (numbers: readonly number[]) => (numbers.length === 0 ? undefined : Math.min(...numbers));

/** What the index of a book answers, found by a search through all records for each question. */
export class NaiveIndex {
  readonly waiters: readonly WaiterRecord[];
  readonly slots: readonly Slot[];
  /** The waiters whose keys have room, or that have none. */
  readonly through: readonly WaiterRecord[];
  readonly #book: Book;
  readonly #collectMs: number;
  /** The key at which a waiter stands. */
  readonly #heldAt = new Map<string, { readonly key: string; readonly payableAt: number | undefined }>();
  /** The lines at the keys, and the waiters that are first in one and wait. */
  readonly #keyLines: string[] = [];
  readonly #lines = new Map<string, LineAnswers>();
  readonly #fronts: { readonly waiter: WaiterRecord; readonly payableAt: number }[] = [];

  constructor(book: Book, collectMs: number) {
    this.#book = book;
    this.#collectMs = collectMs;
    this.waiters = [...book.all("waiter")].sort(oldestFirst);
    this.slots = [...book.all("lease"), ...book.all("offer")];
    this.through = this.#climbed();
  }

  get lines(): LineName[] {
    const all = [
      ...this.waiters.map(({ bucket, demand }) => ({ ofClass: classOf(demand), bucket })),
      ...this.slots.map(({ bucket, charge }) => ({ ofClass: classOf(charge?.asked), bucket })),
    ];
    return [...new Map(all.map((one) => [JSON.stringify(one), one])).values()];
  }

  line(of: LineName): LineAnswers {
    const id = `${of.ofClass} ${of.bucket}`;
    const line = this.#lines.get(id) ?? this.#search(of);
    this.#lines.set(id, line);
    return line;
  }

  #search(of: LineName): LineAnswers {
    const { inside, outside } = this.#in(of);
    const through = (one: WaiterRecord) => this.through.includes(one);
    const parked = outside.filter((one) => !through(one));
    const outsiders = outside.filter(through);
    const head = inside.find(through);
    const headWidth = widthOf(head?.demand);
    const outsideWidth = head === undefined && outsiders[0] !== undefined ? widthOf(outsiders[0].demand) : headWidth;
    const waiting = sum(inside.filter((one) => !this.#isOffered(one)).map(({ demand }) => widthOf(demand)));
    return {
      places: inside.length,
      youngest: inside.at(-1)?.key,
      waiting,
      head: head?.key,
      outsiders: outsiders.length,
      oldestOutside: outsiders[0]?.key,
      parked: parked.length,
      parkedPresent: parked.filter(({ awayAt }) => awayAt === undefined).length,
      inFlight: this.#held(of),
      isGrantable: this.#isGrantable(of.bucket, headWidth),
      isGrantableOutside: this.#isGrantable(of.bucket, outsideWidth),
    };
  }

  ofClass(name: string) {
    const inside = this.waiters.filter((one) => one.isInside && classOf(one.demand) === name);
    const away = inside
      .filter((one) => one.awayAt !== undefined && !this.#isOffered(one))
      .sort((a, b) => (a.awayAt ?? 0) - (b.awayAt ?? 0) || (a.key < b.key ? -1 : 1));
    return {
      inFlight: sum(this.lines.filter(({ ofClass }) => ofClass === name).map((of) => this.#held(of))),
      waiting: sum(inside.filter((one) => !this.#isOffered(one)).map(({ demand }) => widthOf(demand))),
      longestAway: away[0]?.key,
      youngestHeldBack: inside.findLast(({ key }) => this.#heldAt.has(key))?.key,
      places: inside.length,
      hasOutsiders: this.waiters.some((one) => !one.isInside && this.#isThroughIn(one, name)),
      isFull: inside.length >= this.#book.policy.waiters,
      next: this.#next(name, () => true),
      swap: this.#swap(name),
    };
  }

  /** WPOOL1 and WPOOL3, for a new waiter of the bucket. */
  admits(of: LineName, returnedTo = Number.POSITIVE_INFINITY) {
    const { places } = this.line(of);
    if (places >= this.#mostPlaces(of.bucket)) return { isAdmitted: false };
    if (!this.ofClass(of.ofClass).isFull) return { isAdmitted: true };
    const loser = this.#loser(of.ofClass, () => true);
    const fewer = loser !== undefined && loser.waiter.arrivedAt > returnedTo ? 1 : 2;
    if (loser === undefined || loser.places < places + fewer) return { isAdmitted: false };
    return { isAdmitted: true, displaces: loser.waiter.key };
  }

  heldAt(session: string) {
    return this.#heldAt.get(session);
  }

  ladder() {
    const now = this.#book.now;
    const wakes = this.#fronts.map(({ waiter: { deadlineAt, awayAt = Number.POSITIVE_INFINITY }, payableAt: at }) =>
      Math.min(at, deadlineAt, awayAt + this.#collectMs),
    );
    const deadlines = this.#fronts.map(({ waiter }) => waiter.deadlineAt);
    return {
      lines: this.#keyLines.toSorted(),
      nextAt: least(wakes),
      overdue: least(deadlines.filter((at) => at <= now)),
    };
  }

  /** The keys in shadow mode that are short for a request. */
  shortOf(asking: Asking): string[] {
    const short = this.#keys.filter((key) => {
      const value = valueOf(key, asking);
      if (value === undefined) return key.isRequired === true;
      const slots = keyLimitsOf(key, value).slots ?? Number.POSITIVE_INFINITY;
      return this.#heldBy(key.name, value) + widthOf(asking.demand) > slots;
    });
    return short.filter(({ isShadow }) => isShadow === true).map(({ name }) => `key:${name}`);
  }

  /** Whether all keys of a request have room. */
  admitsKeys(waiter: WaiterRecord): boolean {
    return this.#keys.every((key) => {
      const value = valueOf(key, waiter);
      return value === undefined || (this.#hasSlots(key, value, waiter) && this.#payableAt(key, waiter) === 0);
    });
  }

  /** Whether leases and offers have more of these values than they may. */
  isOver(keys: { readonly [name: string]: string }): boolean {
    return this.#keys.some((key) => {
      const value = keys[key.name];
      return value !== undefined && this.#heldBy(key.name, value) > enforcedSlotsOf(key, value);
    });
  }

  refills() {
    const budgets = [...this.#book.all("budget")];
    const ends = budgets.map(({ level, limit, perMs }) => level.at + (level.spent * perMs) / limit);
    const values = new Set(budgets.map(({ key }) => keyOfAccount(key)).filter((value) => value !== undefined));
    return { first: least(ends), last: ends.length === 0 ? undefined : Math.max(...ends), values: [...values].sort() };
  }

  get #keys(): readonly KeyPolicy[] {
    return this.#book.policy.keys ?? [];
  }

  #isOffered({ key }: WaiterRecord): boolean {
    return this.#book.get("offer", key) !== undefined;
  }

  /** Whether it could be granted as far as its client and its instance are concerned, or waits for a place. */
  #climbs(waiter: WaiterRecord): boolean {
    const { awayAt, instance, isInside } = waiter;
    const isHindered = this.#isOffered(waiter) || this.#book.get("absence", instance) !== undefined;
    const isGone = awayAt !== undefined && awayAt + this.#collectMs <= this.#book.now;
    if (isInside) return !isHindered && !isGone;
    return awayAt === undefined && (!isHindered || this.#rungs(waiter).length === 0);
  }

  #rungs(waiter: WaiterRecord): KeyPolicy[] {
    return this.#keys.filter((key) => {
      const value = valueOf(key, waiter);
      return value !== undefined && holdsBack(key, value);
    });
  }

  /** LADDER1: at each key, the oldest of each value and class goes on if there is room. Returns those that pass all. */
  #climbed(): WaiterRecord[] {
    let climbing = this.waiters.filter((one) => this.#climbs(one));
    const climbers = climbing;
    for (const key of this.#keys) {
      const idOf = (one: WaiterRecord) => `${classOf(one.demand)} ${key.name} ${valueOf(key, one)}`;
      const concerned = (all: readonly WaiterRecord[]) => all.filter((one) => this.#rungs(one).includes(key));
      for (const id of new Set(concerned(climbers).map(idOf))) {
        const queue = concerned(climbing).filter((one) => idOf(one) === id);
        const standing = this.#standing(key, queue);
        climbing = climbing.filter((one) => !standing.includes(one));
        const { inFlight, passed } = this.#passedOf(key, id, queue, standing);
        this.#keyLines.push(`${id}: ${inFlight} held, ${queue.length} here, passed ${passed}`);
      }
    }
    return climbing;
  }

  #passedOf(key: KeyPolicy, id: string, queue: readonly WaiterRecord[], standing: readonly WaiterRecord[]) {
    const value = id.split(" ")[2] as string;
    const passed = queue.find((one) => !standing.includes(one))?.key;
    return { inFlight: this.#heldBy(key.name, value), passed };
  }

  /** Who of a line at a key stays there. */
  #standing(key: KeyPolicy, queue: readonly WaiterRecord[]): readonly WaiterRecord[] {
    const [front, ...others] = queue;
    if (front === undefined) return [];
    const at = this.#payableAt(key, front);
    const hasSlots = this.#hasSlots(key, valueOf(key, front) ?? "", front);
    for (const one of others) this.#heldAt.set(one.key, { key: key.name, payableAt: undefined });
    if (hasSlots && at === 0) return others;
    this.#heldAt.set(front.key, { key: key.name, payableAt: hasSlots ? at : undefined });
    this.#fronts.push({ waiter: front, payableAt: hasSlots ? at : Number.POSITIVE_INFINITY });
    return queue;
  }

  #hasSlots(key: KeyPolicy, value: string, { demand }: WaiterRecord): boolean {
    return this.#heldBy(key.name, value) + widthOf(demand) <= enforcedSlotsOf(key, value);
  }

  #heldBy(name: string, value: string): number {
    const own = this.slots.filter(({ charge }) => charge?.asked?.keys?.[name] === value);
    return sum(own.map(({ width }) => width));
  }

  #payableAt(key: KeyPolicy, waiter: WaiterRecord): number {
    const enforced = keyAccounts(key, waiter, { values: 0, has: () => true }).filter(({ budget }) => !budget.isShadow);
    const times = enforced.map(({ account, budget, amount }) =>
      payableAt(this.#book.get("budget", account)?.level ?? newLevel(), budget, amount, this.#book.now),
    );
    return Math.max(0, ...times);
  }

  #in({ ofClass, bucket }: LineName) {
    const own = this.waiters.filter((one) => one.bucket === bucket && classOf(one.demand) === ofClass);
    return { inside: own.filter(({ isInside }) => isInside), outside: own.filter(({ isInside }) => !isInside) };
  }

  #held({ ofClass, bucket }: LineName): number {
    const own = this.slots.filter((one) => one.bucket === bucket && classOf(one.charge?.asked) === ofClass);
    return sum(own.map(({ width }) => width));
  }

  /** Whether the limit and the cooldown of the bucket allow it this number of slots. */
  #isGrantable(bucket: string, width: number): boolean {
    const held = sum(this.slots.filter((one) => one.bucket === bucket).map((one) => one.width));
    const limit = bucket === SHARED_BUCKET ? Number.POSITIVE_INFINITY : this.#book.policy.slotsPerBucket;
    return held + width <= limit && this.#book.get("cooldown", bucket) === undefined;
  }

  #mostPlaces(bucket: string): number {
    return bucket === SHARED_BUCKET ? Number.POSITIVE_INFINITY : this.#book.policy.waitersPerBucket;
  }

  #isThroughIn(waiter: WaiterRecord, name: string): boolean {
    return classOf(waiter.demand) === name && this.through.includes(waiter);
  }

  /** WPOOL2: of the lines with the fewest places, the oldest outside. */
  #next(name: string, isOpen: (of: LineName) => boolean): string | undefined {
    const lines = this.lines.filter((of) => of.ofClass === name && isOpen(of));
    const able = lines
      .filter((of) => this.line(of).outsiders > 0 && this.line(of).places < this.#mostPlaces(of.bucket))
      .map((of) => ({ places: this.line(of).places, waiter: this.#waiter(this.line(of).oldestOutside) }));
    return able.sort((a, b) => a.places - b.places || oldestFirst(a.waiter, b.waiter))[0]?.waiter.key;
  }

  /** WPOOL1: the youngest of the line with the most places. */
  #loser(name: string, isOpen: (of: LineName) => boolean) {
    const able = this.lines
      .filter((of) => of.ofClass === name && this.line(of).places > 0 && isOpen(of))
      .map((of) => ({ places: this.line(of).places, waiter: this.#waiter(this.line(of).youngest) }));
    return able.sort((a, b) => b.places - a.places || oldestFirst(b.waiter, a.waiter))[0];
  }

  /** WPOOL5. */
  #swap(name: string) {
    const leaves = this.#loser(name, (of) => this.line(of).waiting > 0 && !this.line(of).isGrantable)?.waiter.key;
    const enters = this.#next(name, (of) => this.line(of).isGrantableOutside);
    return leaves === undefined || enters === undefined ? undefined : { leaves, enters };
  }

  #waiter(session: string | undefined): WaiterRecord {
    return this.#book.get("waiter", session ?? "") as WaiterRecord;
  }
}

function valueOf({ name }: KeyPolicy, { bucket, demand }: Asking): string | undefined {
  if (name === BUCKET_KEY) return bucket === SHARED_BUCKET ? undefined : bucket;
  return demand?.keys?.[name];
}
