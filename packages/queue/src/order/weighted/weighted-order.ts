import type { Book } from "../../book/book.ts";
import type { Line } from "../../book/line.ts";
import { charge } from "../../book/use.ts";
import type { Order, OverCeiling, Ranking } from "../contract.ts";
import { PlainOrder } from "../plain-order.ts";
import { NEW_HEAD, NEW_LINE, type WeightedHead, type WeightedLine, type WeightedSettings } from "./numbers.ts";
import { afterTurn, halved, Turns, virtualTime } from "./turns.ts";

/**
 * The scheduler of the original service. At a hot host lines take turns; at a cold one another order decides. Layers 4
 * to 6 of the funnel.
 *
 * WEIGHTED1 A line that joins starts at the smallest virtual time of those that wait, so its absence is no advantage. It
 *   never starts before the last turn: a line that waits at its limit may be far behind, and lines that join beside it
 *   would overtake all others.
 * WEIGHTED2 While no slot is free, the first lines are tried in vain, at most `maxProbesPerCycle` of them once per poll
 *   interval. This raises their weight, but does not use their turn: otherwise each line that joins later would overtake
 *   those that have waited for long.
 * WEIGHTED3 The numbers of a line outlive its last waiter by one idle period (`use.ts`).
 */
export class WeightedOrder implements Order {
  readonly #settings: WeightedSettings;
  readonly #cold: Order;
  readonly #hot: PlainOrder;

  constructor(ofClass: string, settings: WeightedSettings, cold: Order) {
    this.#settings = settings;
    this.#cold = cold;
    this.#hot = new PlainOrder(ofClass, () => new Turns(settings.scheduler));
  }

  add(line: Line): void {
    this.#cold.add(line);
    this.#hot.add(line);
  }

  remove(line: Line): void {
    this.#cold.remove(line);
    this.#hot.remove(line);
  }

  next(book: Book, room?: number): Line | undefined {
    return this.#inForce(book).next(book, room);
  }

  passedOver(book: Book): Line | undefined {
    return this.#inForce(book).passedOver(book);
  }

  first(book: Book): Line | undefined {
    return this.#inForce(book).first(book);
  }

  overCeiling(): readonly OverCeiling[] {
    return [];
  }

  newRanking(book: Book): Ranking {
    return this.#inForce(book).newRanking(book);
  }

  nextMoment({ head, now }: Book): number | undefined {
    return head.weighted?.isHot === true ? (head.weighted.triedAt ?? now) + this.#settings.pollIntervalMs : undefined;
  }

  isHot(book: Book): boolean {
    return measureHeat(book, this.#settings);
  }

  begin(book: Book): void {
    const isHot = measureHeat(book, this.#settings);
    if (isHot !== (book.head.weighted?.isHot ?? false)) putHead(book, { isHot });
  }

  join(book: Book, name: string): void {
    this.#cold.join(book, name);
    const line = book.index.line(name);
    if (line === undefined || line.waiting > 0) return;
    const { turnAt } = book.head.weighted ?? NEW_HEAD;
    const first = this.#hot.first(book);
    const start = Math.max(turnAt, first === undefined ? 0 : virtualTime(first));
    if (virtualTime(line) < start) putLine(book, line, { virtualTime: start });
  }

  granted(book: Book, line: Line): void {
    if (book.head.weighted?.isHot !== true) return this.refused(book, line);
    putHead(book, { turnAt: virtualTime(line), triedAt: book.now });
    putLine(book, line, afterTurn(line.weighted, this.#settings.scheduler));
  }

  /** A grant and a refusal halve the number of waits. */
  refused(book: Book, line: Line): void {
    if ((line.weighted?.waitCount ?? 0) > 0) putLine(book, line, halved(line.weighted ?? NEW_LINE));
  }

  /** Layer 5: WEIGHTED2. */
  full(book: Book): void {
    const { scheduler, pollIntervalMs } = this.#settings;
    const { isHot, triedAt = Number.NEGATIVE_INFINITY } = book.head.weighted ?? NEW_HEAD;
    if (!isHot || book.now - triedAt < pollIntervalMs) return;
    putHead(book, { triedAt: book.now });
    for (const line of this.#hot.firstOpen(book, scheduler.maxProbesPerCycle ?? book.policy.slots)) {
      const { waitCount, waitCountedAt = Number.NEGATIVE_INFINITY } = line.weighted ?? NEW_LINE;
      if (book.now - waitCountedAt < pollIntervalMs) continue;
      putLine(book, line, { waitCount: waitCount + 1, waitCountedAt: book.now });
    }
  }

  #inForce({ head }: Book): Order {
    return head.weighted?.isHot === true ? this.#hot : this.#cold;
  }
}

/**
 * Layer 4 of the funnel: is the host crowded?
 *
 * | pending, average wait                          | result       |
 * |------------------------------------------------|--------------|
 * | none pending, or average ≤ cold                | cold         |
 * | ≥ max(factor × slots, least), average ≥ hot    | hot          |
 * | anything between                               | unchanged    |
 */
function measureHeat(book: Book, { scheduler, pollIntervalMs }: WeightedSettings): boolean {
  const { avgWaitMs, weighted, slots } = book.head;
  const pending = book.size("waiter");
  const coldMs = scheduler.coldAvgWaitMs ?? pollIntervalMs;
  const hotMs = scheduler.hotAvgWaitMs ?? 3 * pollIntervalMs + book.policy.minHoldMs;
  const crowd = Math.max(scheduler.hotPendingFactor * slots, scheduler.hotPendingMin);
  if (pending === 0 || avgWaitMs <= coldMs) return false;
  return weighted?.isHot === true || (pending >= crowd && avgWaitMs >= hotMs);
}

function putHead(book: Book, change: Partial<WeightedHead>): void {
  book.draft.weighted = { ...NEW_HEAD, ...book.head.weighted, ...change };
}

/** An account is not charged again: a line that returns may start below the meter, and a second charge would lift it. */
function putLine(book: Book, { name, weighted, account }: Line, change: Partial<WeightedLine>): void {
  book.put({ ...(account ?? charge(book, name)), weighted: { ...NEW_LINE, ...weighted, ...change } });
}
