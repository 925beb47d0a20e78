/** What is measured, each in a process of its own: `node subjects.js ID OPERATIONS` prints one number. */
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { MessageChannel, Worker } from "node:worker_threads";
import { SharedSemaphore } from "slotkeeper/threads";
import { median } from "../timing.ts";

export interface Subject {
  readonly row: "T1" | "T2" | "lag";
  readonly label: string;
  readonly unit: "ns" | "µs";
  readonly operations: number;
  measure(operations: number): number | Promise<number>;
}

/** Nanoseconds per call of one iteration, after as many to warm up. */
function timed(operations: number, loop: (count: number) => void): number {
  loop(operations);
  const startedAt = process.hrtime.bigint();
  loop(operations);
  return Number(process.hrtime.bigint() - startedAt) / operations;
}

function pairOfSwaps(operations: number): number {
  const words = new Int32Array(new SharedArrayBuffer(1024));
  let swapped = 0;
  const result = timed(operations, (count) => {
    for (let turn = 0; turn < count; turn++) {
      if (Atomics.compareExchange(words, 64, 0, 7) === 0) swapped++;
      if (Atomics.compareExchange(words, 64, 7, 0) === 7) swapped++;
    }
  });
  if (swapped !== operations * 4) throw new Error("A swap failed");
  return result;
}

function uncontended(
  operations: number,
  take: (semaphore: SharedSemaphore) => { release(): boolean } | undefined,
): number {
  const semaphore = SharedSemaphore.create(4);
  let released = 0;
  const result = timed(operations, (count) => {
    for (let turn = 0; turn < count; turn++) if (take(semaphore)?.release() === true) released++;
  });
  if (released !== operations * 2) throw new Error("A slot was not free");
  return result;
}

async function awaited(operations: number): Promise<number> {
  const semaphore = SharedSemaphore.create(4);
  const loop = async (count: number) => {
    for (let turn = 0; turn < count; turn++) (await semaphore.acquire()).release();
  };
  await loop(operations);
  const startedAt = process.hrtime.bigint();
  await loop(operations);
  return Number(process.hrtime.bigint() - startedAt) / operations;
}

/** Two workers on one job; the median of what they measured, in microseconds. */
async function betweenTwo(job: "sync" | "async" | "channel" | "lag" | "idle", rounds: number): Promise<number> {
  const semaphore = SharedSemaphore.create(1);
  const shared = new BigInt64Array(new SharedArrayBuffer(64));
  const { port1, port2 } = new MessageChannel();
  const held = job === "lag" ? semaphore.tryAcquire() : undefined;
  const script = fileURLToPath(new URL("worker.js", import.meta.url));
  const workers = [port1, port2].map(
    (port, index) =>
      new Worker(script, {
        workerData: { job, handle: semaphore.handle, shared, port, index, rounds },
        transferList: [port],
      }),
  );
  const samples = (await Promise.all(workers.map(async (worker) => (await once(worker, "message"))[0]))) as number[][];
  held?.release();
  await Promise.all(workers.map((worker) => worker.terminate()));
  return median(samples.flat());
}

const MILLIONS = 3_000_000;
const HAND_OVERS = 5000;

export const subjects: Readonly<Record<string, Subject>> = {
  swaps: {
    row: "T1",
    label: "limit: a pair of compare-and-swaps",
    unit: "ns",
    operations: MILLIONS,
    measure: pairOfSwaps,
  },
  tryAcquire: {
    row: "T1",
    label: "tryAcquire + release",
    unit: "ns",
    operations: MILLIONS,
    measure: (operations) => uncontended(operations, (semaphore) => semaphore.tryAcquire()),
  },
  acquireSync: {
    row: "T1",
    label: "acquireSync + release",
    unit: "ns",
    operations: MILLIONS,
    measure: (operations) => uncontended(operations, (semaphore) => semaphore.acquireSync()),
  },
  acquire: { row: "T1", label: "await acquire + release", unit: "ns", operations: MILLIONS / 3, measure: awaited },
  channel: {
    row: "T2",
    label: "limit: a MessageChannel round trip",
    unit: "µs",
    operations: HAND_OVERS,
    measure: (rounds) => betweenTwo("channel", rounds),
  },
  sync: {
    row: "T2",
    label: "hand-over to acquireSync",
    unit: "µs",
    operations: HAND_OVERS,
    measure: (rounds) => betweenTwo("sync", rounds),
  },
  async: {
    row: "T2",
    label: "hand-over to await acquire",
    unit: "µs",
    operations: HAND_OVERS,
    measure: (rounds) => betweenTwo("async", rounds),
  },
  idle: {
    row: "lag",
    label: "limit: lag of an idle worker's event loop (p99)",
    unit: "µs",
    operations: 1000,
    measure: (forMs) => betweenTwo("idle", forMs),
  },
  waiting: {
    row: "lag",
    label: "lag while `acquire` is pending (p99)",
    unit: "µs",
    operations: 1000,
    measure: (forMs) => betweenTwo("lag", forMs),
  },
};
