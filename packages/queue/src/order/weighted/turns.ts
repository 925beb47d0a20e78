import type { SchedulerOptions } from "../../options.ts";
import type { Rank, RankedLine } from "../contract.ts";
import { hasOlderHead } from "../order.ts";
import { TopOfHeap } from "../plain-order.ts";
import { NEW_LINE, type WeightedLine } from "./numbers.ts";

/**
 * Layer 6 of the funnel: weighted round robin. The line with the smallest virtual time takes its turn. Then its virtual
 * time grows by 1/weight, with weight = base + perWait × waitCount. Cost: O(log n).
 */
export class Turns extends TopOfHeap {
  readonly #scheduler: SchedulerOptions;

  constructor(scheduler: SchedulerOptions) {
    super("turnIndex", isBefore);
    this.#scheduler = scheduler;
  }

  advance(copy: RankedLine): void {
    copy.weighted = afterTurn(copy.weighted, this.#scheduler);
  }
}

export function virtualTime({ weighted }: Rank): number {
  return weighted?.virtualTime ?? 0;
}

/** A grant takes a turn, and halves the number of waits. */
export function afterTurn(
  line: WeightedLine = NEW_LINE,
  { baseWeight, weightPerWait }: SchedulerOptions,
): WeightedLine {
  const weight = Math.max(1, baseWeight + weightPerWait * line.waitCount);
  return halved({ ...line, virtualTime: line.virtualTime + 1 / weight });
}

export function halved(line: WeightedLine): WeightedLine {
  return { ...line, waitCount: Math.floor(line.waitCount / 2) };
}

function isBefore(a: Rank, b: Rank): boolean {
  const ahead = virtualTime(a) - virtualTime(b);
  return ahead === 0 ? hasOlderHead(a, b) : ahead < 0;
}
