/** One of the two workers of a hand-over; answers with its samples in microseconds. */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { SharedSemaphore, type SharedSemaphoreHandle, type SharedSlot } from "slotkeeper/threads";

interface WorkerData {
  readonly job: "sync" | "async" | "channel" | "lag" | "idle";
  readonly handle: SharedSemaphoreHandle;
  /** When the slot was released (0: no worker was waiting), how many workers are ready, whether one has finished. */
  readonly shared: BigInt64Array<SharedArrayBuffer>;
  readonly port: MessagePort;
  readonly index: number;
  readonly rounds: number;
}

const RELEASED_AT = 0;
const READY = 1;
const FINISHED = 2;

const { job, handle, shared, port, index, rounds } = workerData as WorkerData;
const semaphore = SharedSemaphore.attach(handle);
const microseconds = (from: bigint) => Number(process.hrtime.bigint() - from) / 1000;

/** Keeps the slot until the other waits for it, so that every release is a hand-over. */
function handOver(slot: SharedSlot): void {
  while (semaphore.waiting === 0 && Atomics.load(shared, FINISHED) === 0n);
  Atomics.store(shared, RELEASED_AT, semaphore.waiting > 0 ? process.hrtime.bigint() : 0n);
  slot.release();
}

async function handOvers(isSync: boolean): Promise<number[]> {
  const samples: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const slot = isSync ? semaphore.acquireSync() : await semaphore.acquire();
    const releasedAt = Atomics.load(shared, RELEASED_AT);
    if (releasedAt !== 0n) samples.push(microseconds(releasedAt));
    handOver(slot);
  }
  Atomics.store(shared, FINISHED, 1n);
  return samples;
}

function roundTrips(): Promise<number[]> {
  return new Promise((resolve) => {
    const samples: number[] = [];
    let sentAt = process.hrtime.bigint();
    let received = 0;
    port.on("message", () => {
      received++;
      if (index === 0) samples.push(microseconds(sentAt));
      sentAt = process.hrtime.bigint();
      if (index === 1 || received < rounds) port.postMessage(0);
      if (received === rounds) resolve(samples);
    });
    if (index === 0) port.postMessage(0);
  });
}

/** The 99th percentile of the event loop's delay over this many milliseconds, with or without a pending `acquire`. */
async function lag(isWaiting: boolean, forMs: number): Promise<number[]> {
  if (isWaiting) void semaphore.acquire();
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  await new Promise((resolve) => setTimeout(resolve, forMs));
  delay.disable();
  return [delay.percentile(99) / 1000];
}

Atomics.add(shared, READY, 1n);
while (Atomics.load(shared, READY) < 2n);
const jobs = {
  sync: () => handOvers(true),
  async: () => handOvers(false),
  channel: roundTrips,
  lag: () => lag(true, rounds),
  idle: () => lag(false, rounds),
};
const samples = await jobs[job]();
// Skips the beginning, before the code is compiled.
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port of Node has no origin
parentPort?.postMessage(samples.slice(samples.length >> 2));
