import { IndexedHeap } from "../indexed-heap.ts";

/** The books of one host: what `transitions.ts` moves and `order.ts` reads. */

/** A bucket's account. It exists while the bucket is active, and afterwards while it is ahead of the meter. */
export interface Account {
  readonly bucket: string;
  weight: number;
  inFlight: number;
  waiting: number;
  usedMs: number;
  asOf: number;
  /** What it could hold: waiting and held, up to its own limit. Part of `Ledger.demand`. */
  demand: number;
  /** It waits and may hold more: part of `Ledger.contendingWeight` and `contendingHeld`. */
  contends: boolean;
  idleIndex: number;
}

export interface Ledger {
  readonly accounts: Map<string, Account>;
  /** Idle accounts ahead of the meter, nearest first: forgotten when the meter has passed them. */
  readonly idle: IndexedHeap<"idleIndex", Account>;
  slots: number;
  /** The meter R, in slot-milliseconds per weight. */
  progress: number;
  asOf: number;
  activeWeight: number;
  inFlight: number;
  waiting: number;
  demand: number;
  contendingWeight: number;
  contendingHeld: number;
}

export function newLedger(now: number): Ledger {
  return {
    accounts: new Map(),
    idle: new IndexedHeap("idleIndex", (a, b) => a.usedMs / a.weight < b.usedMs / b.weight),
    slots: 0,
    progress: 0,
    asOf: now,
    activeWeight: 0,
    inFlight: 0,
    waiting: 0,
    demand: 0,
    contendingWeight: 0,
    contendingHeld: 0,
  };
}

export function isActive(account: Account): boolean {
  return account.inFlight > 0 || account.waiting > 0;
}
