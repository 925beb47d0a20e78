import type { IndexedHeap } from "slotkeeper/parts";
import type { Order } from "../order/contract.ts";
import { Ledger } from "./ledger.ts";
import type { WaiterEntry } from "./line.ts";
import { RestingLines } from "./resting-lines.ts";
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
