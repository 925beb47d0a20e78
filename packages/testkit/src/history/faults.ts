import type { FaultKind } from "./line.ts";
import type { Lines } from "./read-history.ts";
import { firstAfter, joined, type Span } from "./spans.ts";

/** When nothing is promised about times, and when slots may have been lost. */
export class Faults {
  readonly #delays: readonly Span[];
  readonly #losses: readonly Span[];
  readonly #jumps: readonly Span[];

  constructor({ faults }: Lines) {
    const spans = (isOf: (kind: FaultKind) => boolean) =>
      faults
        .filter(({ fault }) => isOf(fault))
        .map(({ from, until = Number.POSITIVE_INFINITY }) => ({ from, until }))
        .sort((a, b) => a.from - b.from);
    this.#delays = joined(spans(() => true));
    this.#losses = spans((kind) => kind === "lost-commits" || kind === "store-clock");
    this.#jumps = spans((kind) => kind === "instance-clock");
  }

  /** Whether a fault overlaps the span. */
  isDelayed(from: number, to: number): boolean {
    const fault = this.#delays[firstAfter(this.#delays, from)];
    return fault !== undefined && fault.from <= to;
  }

  /** Whether the clock of an instance jumped in the span. */
  hasClockJump(from: number, to: number): boolean {
    return this.#jumps.some((jump) => jump.from <= to && jump.until >= from);
  }

  /** The end of the fault at this time, or the time itself. */
  over(at: number): number {
    const fault = this.#delays[firstAfter(this.#delays, at)];
    return fault !== undefined && fault.from <= at ? fault.until : at;
  }

  /** The parts of the span without a fault. */
  quiet({ from, until }: Span): Span[] {
    const parts: Span[] = [];
    let at = from;
    for (const delay of this.#delays) {
      if (delay.until <= at) continue;
      if (delay.from >= until) break;
      if (delay.from > at) parts.push({ from: at, until: delay.from });
      at = delay.until;
    }
    if (at < until) parts.push({ from: at, until });
    return parts;
  }

  /** From when on a slot of a session that began at `askedAt` may be lost: by lost commits, or by the store's clock. */
  doubtedFrom(askedAt: number): number {
    return this.#losses.find(({ until }) => until > askedAt)?.from ?? Number.POSITIVE_INFINITY;
  }
}
