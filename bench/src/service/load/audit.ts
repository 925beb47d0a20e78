import { jain, percentile } from "./statistics.ts";

/** One slot that a client holds, by its clock: from the arrival of the answer to the sending of the release. */
export interface Hold {
  readonly host: string;
  readonly bucket: string;
  readonly waitedMs: number;
  readonly grantedAt: number;
  endedAt: number;
}

/**
 * Checks the limits from the point of view of the clients. A hold counts from the arrival of its answer until its
 * release is sent. This is inside the time in which the server must count it, so every excess here is a violation.
 */
export class Audit {
  readonly holds: Hold[] = [];
  violations = 0;
  readonly #slots: number;
  readonly #slotsPerBucket: number;
  readonly #held = new Map<string, number>();
  /** By host, because two hosts may have the same fence. */
  readonly #fences = new Set<string>();

  constructor(limits: { readonly slots: number; readonly slotsPerBucket: number }) {
    this.#slots = limits.slots;
    this.#slotsPerBucket = limits.slotsPerBucket;
  }

  granted(host: string, bucket: string, fence: number, waitedMs: number): Hold {
    const isOver = this.#count(host, 1) > this.#slots || this.#count(`${host} ${bucket}`, 1) > this.#slotsPerBucket;
    const grant = `${host} ${fence}`;
    if (isOver || this.#fences.has(grant)) this.violations++;
    this.#fences.add(grant);
    const hold = { host, bucket, waitedMs, grantedAt: performance.now(), endedAt: Number.POSITIVE_INFINITY };
    this.holds.push(hold);
    return hold;
  }

  releasing(hold: Hold): void {
    hold.endedAt = performance.now();
    this.#count(hold.host, -1);
    this.#count(`${hold.host} ${hold.bucket}`, -1);
  }

  #count(key: string, by: 1 | -1): number {
    const held = (this.#held.get(key) ?? 0) + by;
    if (held === 0) this.#held.delete(key);
    else this.#held.set(key, held);
    return held;
  }
}

/** Slot-milliseconds of each bucket in the window. Holds that continue count up to its end. */
export function slotTime(holds: readonly Hold[], buckets: readonly string[], from: number, to: number): number[] {
  const used = new Map(buckets.map((bucket) => [bucket, 0]));
  for (const { bucket, grantedAt, endedAt } of holds) {
    const inside = Math.min(endedAt, to) - Math.max(grantedAt, from);
    if (inside > 0) used.set(bucket, (used.get(bucket) ?? 0) + inside);
  }
  return [...used.values()];
}

/** The time in which a host with this number of slots is measured, without the warm-up before it. */
export interface SlotWindow {
  readonly slots: number;
  readonly from: number;
  readonly to: number;
}

/** The part of the slot time in the window that clients held, by their own clocks. */
export function utilisation(holds: readonly Hold[], { slots, from, to }: SlotWindow): number {
  const buckets = [...new Set(holds.map(({ bucket }) => bucket))];
  const held = slotTime(holds, buckets, from, to).reduce((sum, ms) => sum + ms, 0);
  return held / (slots * (to - from));
}

/** The least fair of the windows that begin at each second. */
export function worstWindow(
  holds: readonly Hold[],
  buckets: readonly string[],
  { from, to, windowMs }: { readonly from: number; readonly to: number; readonly windowMs: number },
): number {
  let worst = 1;
  for (let start = from; start + windowMs <= to; start += 1000) {
    worst = Math.min(worst, jain(slotTime(holds, buckets, start, start + windowMs)));
  }
  return worst;
}

/**
 * How long slots that were freed in the window stayed idle at a host that always had waiters: the n-th release makes
 * room for the n-th grant after all slots were taken.
 */
export function idleP99(holds: readonly Hold[], { slots, from, to }: SlotWindow): number {
  const freed = holds.map(({ endedAt }) => endedAt).sort((a, b) => a - b);
  const taken = holds
    .map(({ grantedAt }) => grantedAt)
    .sort((a, b) => a - b)
    .slice(slots);
  const idle = taken.flatMap((at, n) => {
    const freedAt = freed[n] ?? Number.POSITIVE_INFINITY;
    return freedAt >= from && freedAt < to ? [Math.max(0, at - freedAt)] : [];
  });
  return percentile(idle, 99);
}
