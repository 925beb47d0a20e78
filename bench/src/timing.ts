/** How one process turns a loop into one figure. The harness takes the median over processes. */

export interface Plan {
  /** Operations per timed batch. */
  readonly count: number;
  readonly batches: number;
  readonly warmUps: number;
}

export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
};

/** Median over the batches of nanoseconds per operation. */
export async function nanosecondsPerOperation(
  plan: Plan,
  loop: (count: number) => Promise<unknown> | void,
): Promise<number> {
  for (let i = 0; i < plan.warmUps; i++) await loop(plan.count);
  const figures: number[] = [];
  for (let i = 0; i < plan.batches; i++) {
    const startedAt = process.hrtime.bigint();
    await loop(plan.count);
    figures.push(Number(process.hrtime.bigint() - startedAt) / plan.count);
  }
  return median(figures);
}

/**
 * As above, but of the time the event loop was busy: what waiters cost whose timers have yet to fire, without the
 * time that passes until then.
 */
export async function busyNanosecondsPerOperation(
  plan: Plan,
  loop: (count: number) => Promise<unknown>,
): Promise<number> {
  for (let i = 0; i < plan.warmUps; i++) await loop(plan.count);
  const figures: number[] = [];
  for (let i = 0; i < plan.batches; i++) {
    const before = performance.eventLoopUtilization();
    await loop(plan.count);
    figures.push((performance.eventLoopUtilization(before).active * 1e6) / plan.count);
  }
  return median(figures);
}

/** Bytes on the heap that something still refers to. Needs `--expose-gc`. */
export function liveHeapBytes(): number {
  if (globalThis.gc === undefined) throw new TypeError("Expected node to run with --expose-gc.");
  for (let i = 0; i < 4; i++) globalThis.gc();
  return process.memoryUsage().heapUsed;
}
