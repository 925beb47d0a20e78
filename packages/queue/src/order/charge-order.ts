import type { Book } from "../book/book.ts";
import { raiseTo, unitsOf } from "../book/charged.ts";
import { lastChargeLevel } from "../book/class-use.ts";
import type { WaiterRecord } from "../book/records.ts";
import type { HostPolicy } from "../host-policy.ts";
import type { Rank, RankedLine } from "./contract.ts";
import { hasOlderHead } from "./order.ts";
import { PlainOrder, TopOfHeap } from "./plain-order.ts";

/**
 * The order `budget:NAME`: the line with the smallest charge per weight, then the oldest head. `book/charged.ts` keeps the
 * charges.
 *
 * CORDER1 For two lines i and j that always have a waiter, the charges per weight differ by at most
 *   (C + E) × (1/wᵢ + 1/wⱼ), with C the largest charge and E the largest sum of corrections of one line's running
 *   grants. Proof: when i is granted, it has the smallest charge per weight. The grant adds at most C / wᵢ to the difference.
 *   After it, only corrections of grants that still run raise i, by at most E / wᵢ, or lower j, by at most E / wⱼ.
 * CORDER2 A line that joins starts at the smallest charge of those that wait, so its absence is no advantage. If none
 *   waits, it starts where the last grant was made: otherwise it would get all grants until it has been charged as much as
 *   the others in the whole time before.
 * CORDER3 The best line is first even if it needs more slots than are free: shares of slots mean nothing here.
 * Cost: O(log n).
 */
export class ChargeOrder extends PlainOrder {
  constructor(ofClass: string, policy: HostPolicy) {
    super(ofClass, () => new ByCharge(policy));
  }

  /** CORDER2. */
  override join(book: Book, name: string): void {
    const line = book.index.line(name);
    if (line === undefined || line.waiting > 0) return;
    const first = this.first(book);
    const start = first === undefined ? lastChargeLevel(book, line.ofClass.name) : chargePerWeight(first);
    if (chargePerWeight(line) < start) raiseTo(book, name, start);
  }
}

class ByCharge extends TopOfHeap {
  readonly #policy: HostPolicy;

  constructor(policy: HostPolicy) {
    super("orderIndex", isChargedLess);
    this.#policy = policy;
  }

  advance(copy: RankedLine, _now: number, { demand }: WaiterRecord): void {
    copy.charged += unitsOf(this.#policy, demand?.cost);
  }
}

export function isChargedLess(a: Rank, b: Rank): boolean {
  const [chargeA, chargeB] = [chargePerWeight(a), chargePerWeight(b)];
  const isSame = Math.abs(chargeA - chargeB) <= ROUNDING * Math.max(1, chargeA, chargeB);
  return isSame ? hasOlderHead(a, b) : chargeA < chargeB;
}

/** Charges are sums of quotients by weights. Without it, equal ones would be ranked by the last bits of their sums. */
const ROUNDING = 1e-12;

function chargePerWeight({ charged, weight }: Pick<Rank, "charged" | "weight">): number {
  return charged / weight;
}
