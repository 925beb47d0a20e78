/**
 * How one process turns a loop into one figure. The harness takes the median over processes.
 *
 * Other programs can only make a batch slower, so the figure is the lower quartile of the batches. A batch is long
 * enough to contain its share of garbage collection. Time spent waiting for a processor is subtracted if the system
 * reports it.
 */
import { readFileSync } from "node:fs";

export type Loop = (count: number) => Promise<unknown> | void;

interface Pace {
  readonly warmUpMs: number;
  readonly measureMs: number;
  /** The duration of one batch if we can choose the number of operations. */
  readonly batchMs: number;
  /** The number of batches that are always measured, however long they take. */
  readonly leastBatches: number;
}

const FULL: Pace = { warmUpMs: 150, measureMs: 250, batchMs: 20, leastBatches: 3 };
const SHORT: Pace = { warmUpMs: 30, measureMs: 40, batchMs: 5, leastBatches: 1 };
/** A batch that takes this long is quadratic or waits for timers; warming up would not change its figure. */
const SLOW_BATCH_MS = 1000;

const paceOf = (isShort: boolean): Pace => (isShort ? SHORT : FULL);

export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
};

const lowerQuartile = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor((values.length - 1) / 4)] ?? Number.NaN;

/** Lower quartile of batches of `count` operations each: nanoseconds per operation, by the given stopwatch. */
async function quartileCost(loop: Loop, count: number, pace: Pace, stopwatch: () => () => number): Promise<number> {
  const batches = async (forMs: number, least: number): Promise<number[]> => {
    const figures: number[] = [];
    const startedAt = performance.now();
    while (figures.length < least || performance.now() - startedAt < forMs) {
      const elapsed = stopwatch();
      await loop(count);
      figures.push(elapsed() / count);
      if (performance.now() - startedAt > SLOW_BATCH_MS * least) break;
    }
    return figures;
  };
  const warmUp = await batches(pace.warmUpMs, 1);
  const [first = Number.NaN] = warmUp;
  if (first * count > SLOW_BATCH_MS * 1e6) return first;
  return lowerQuartile(await batches(pace.measureMs, pace.leastBatches));
}

/** Nanoseconds that this thread has waited for a processor; 0 if the system does not report it. */
function queuedNs(): number {
  try {
    return Number(readFileSync("/proc/self/schedstat", "utf8").split(" ")[1] ?? 0);
  } catch {
    return 0;
  }
}

/** Starts a stopwatch: nanoseconds since now, without the time spent waiting for a processor. */
export const wallClock = (): (() => number) => {
  const queuedBefore = queuedNs();
  const startedAt = process.hrtime.bigint();
  return () => {
    const elapsed = Number(process.hrtime.bigint() - startedAt);
    return Math.max(1, elapsed - (queuedNs() - queuedBefore));
  };
};

/** The time in which the event loop was busy, without the wait for timers. */
const busyClock = () => {
  const queuedBefore = queuedNs();
  const before = performance.eventLoopUtilization();
  return () => {
    const active = performance.eventLoopUtilization(before).active * 1e6;
    return Math.max(1, active - (queuedNs() - queuedBefore));
  };
};

/** Nanoseconds per operation, in batches of a suitable size, up to `most` operations. */
export async function cost(loop: Loop, most: number, isShort: boolean): Promise<number> {
  const pace = paceOf(isShort);
  const trial = Math.max(1, Math.round(most / 10_000));
  await loop(trial);
  const elapsed = wallClock();
  await loop(trial);
  const perOperation = elapsed() / trial;
  const count = Math.round(Math.min(most, Math.max(1, (pace.batchMs * 1e6) / perOperation)));
  // The trial ran uncompiled code: if it allowed fewer than `most`, the warmed loop may allow more.
  const settled = count === most ? count : await warmedCount(loop, count, most, pace);
  return quartileCost(loop, settled, pace, wallClock);
}

async function warmedCount(loop: Loop, count: number, most: number, pace: Pace): Promise<number> {
  await loop(count);
  const elapsed = wallClock();
  await loop(count);
  return Math.round(Math.min(most, Math.max(1, (pace.batchMs * 1e6 * count) / elapsed())));
}

/** Nanoseconds per operation in batches of exactly `count` operations. */
export const costOfBatch = (loop: Loop, count: number, isShort: boolean): Promise<number> =>
  quartileCost(loop, count, paceOf(isShort), wallClock);

/** Like `costOfBatch`, but counts only the time in which the event loop was busy. */
export const busyCostOfBatch = (loop: Loop, count: number, isShort: boolean): Promise<number> =>
  quartileCost(loop, count, paceOf(isShort), busyClock);

/** Bytes on the heap that something still refers to. Needs `--expose-gc`. */
export function liveHeapBytes(): number {
  if (globalThis.gc === undefined) throw new TypeError("Expected node to run with --expose-gc.");
  for (let i = 0; i < 4; i++) globalThis.gc();
  return process.memoryUsage().heapUsed;
}

/** Sizes over 1,000 in short mode. */
export const sized = (count: number, isShort: boolean): number => (isShort && count > 1000 ? count / 20 : count);
