import { IndexedHeap } from "slotkeeper/parts";
import type { Order } from "../order/contract.ts";
import { Ledger } from "./ledger.ts";
import type { Line, WaiterEntry } from "./line.ts";
import { WaiterPool } from "./waiter-pool.ts";

/**
 * What each class of a host has for itself: a pool of waiters, an order of its lines and the sums over them. A host without
 * classes has the default class alone. Derived from the records.
 */
export class ClassIndex {
  readonly name: string;
  readonly pool = new WaiterPool();
  readonly ledger = new Ledger();
  readonly resting = new RestingLines();
  /** The order of its lines, made when first needed. */
  order: Order | undefined;
  /** The slots of its leases and offers. */
  inFlight = 0;
  /** The slots that its waiters inside the pool without an offer need. */
  waiting = 0;
  /** How many lines it has. */
  lines = 0;
  /** Waiters inside the pool whose client is away, and those whose client is gone, the longest away first. */
  away: IndexedHeap<"awayIndex", WaiterEntry> | undefined;
  gone: IndexedHeap<"goneIndex", WaiterEntry> | undefined;
  /** Waiters inside the pool that one of their keys holds back, the youngest first. */
  heldBack: IndexedHeap<"heldBackIndex", WaiterEntry> | undefined;

  constructor(name: string) {
    this.name = name;
  }

  /** The waiter inside the pool whose client has been away for the longest time. */
  get longestAway(): WaiterEntry | undefined {
    return this.gone?.peek() ?? this.away?.peek();
  }
}

/** The lines that wait for a time to pass: in a cooldown, or idle with an account. Cost: O(log n) each. */
class RestingLines {
  // Created when first needed: a host that is used once needs none of these, and a new host should cost little.
  /** Lines in a cooldown that are wanted (`Line.isWanted`), the one whose cooldown ends first first. */
  #cooling: IndexedHeap<"coolIndex", Line> | undefined;
  /** Lines without slots or waiters that are ahead of the meter; the one nearest to the meter first. */
  #idle: IndexedHeap<"idleIndex", Line> | undefined;
  /** Lines without slots or waiters whose account has other numbers; the one idle for the longest time first. */
  #resting: IndexedHeap<"restIndex", Line> | undefined;

  /** When the first cooldown of a line that is wanted ends. */
  get nextCoolAt(): number | undefined {
    return this.#cooling?.peek()?.coolsUntil;
  }

  get nextIdle(): Line | undefined {
    return this.#idle?.peek();
  }

  get nextResting(): Line | undefined {
    return this.#resting?.peek();
  }

  remove(line: Line): void {
    this.#cooling?.remove(line);
    this.#idle?.remove(line);
    this.#resting?.remove(line);
  }

  cools(line: Line): void {
    this.#cooling ??= new IndexedHeap("coolIndex", coolsBefore);
    this.#cooling.push(line);
  }

  rests(line: Line): void {
    if (line.hasNumbers) {
      this.#resting ??= new IndexedHeap("restIndex", isLongerIdle);
      this.#resting.push(line);
      return;
    }
    this.#idle ??= new IndexedHeap("idleIndex", isNearer);
    this.#idle.push(line);
  }
}

function coolsBefore(a: Line, b: Line): boolean {
  return (a.coolsUntil ?? 0) < (b.coolsUntil ?? 0);
}

function isNearer(a: Line, b: Line): boolean {
  return a.usedMs / a.weight < b.usedMs / b.weight;
}

function isLongerIdle(a: Line, b: Line): boolean {
  return a.asOf < b.asOf;
}
