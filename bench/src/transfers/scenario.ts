/**
 * Twenty users upload one file after the other through ten slots; one more user does the same, with or without
 * thousands of blocked requests behind the one that is served. How long do the twenty wait for a slot?
 *
 * In every case, the user with the backlog has one upload at a time: only the length of its queue differs.
 */
import { Semaphore, type Slot } from "slotkeeper";
import { TransferSlots } from "slotkeeper/transfers";
import { median, sized } from "../timing.ts";
import type { Measurement } from "../workload.ts";

const SLOTS = 10;
const USERS = 20;
const SAMPLES = 100_000;

type Acquire = (user: string) => Promise<Slot>;

/** How requests queue: ours, and as a control one queue for all, in which a backlog is ahead of all others. */
const subjects: Readonly<Record<string, () => Acquire>> = {
  "two tiers": () => {
    const slots = new TransferSlots({ maxUploads: SLOTS });
    return (user) => slots.acquireUpload(user);
  },
  "one queue": () => {
    const semaphore = new Semaphore(SLOTS);
    return () => semaphore.acquire();
  },
};

/** An upload lasts one turn of the event loop. */
const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

/** Keeps `backlog` requests blocked behind the one that is served, until stopped. */
function startGreedyUser(acquire: Acquire, backlog: number, isOver: () => boolean): void {
  const ask = async (): Promise<void> => {
    while (!isOver()) {
      const slot = await acquire("greedy");
      await turn();
      slot.release();
    }
  };
  for (let i = 0; i <= backlog; i++) void ask();
}

/** Waits of the others, in nanoseconds. */
async function waitsOf(acquire: Acquire, count: number): Promise<number[]> {
  const waits: number[] = [];
  const user = async (name: string): Promise<void> => {
    while (waits.length < count) {
      const startedAt = process.hrtime.bigint();
      const slot = await acquire(name);
      waits.push(Number(process.hrtime.bigint() - startedAt));
      await turn();
      slot.release();
    }
  };
  await Promise.all(Array.from({ length: USERS }, (_, i) => user(`user ${i}`)));
  return waits.slice(0, count);
}

/** Median wait, and the 99th percentile beside it. */
export async function measure(subject: string, backlog: number, isShort: boolean): Promise<Measurement> {
  const acquire = subjects[subject]?.();
  if (acquire === undefined) throw new RangeError(`Expected a subject to be known, got "${subject}".`);
  let isOver = false;
  startGreedyUser(acquire, backlog, () => isOver);
  const count = sized(SAMPLES, isShort);
  await waitsOf(acquire, count);
  // The backlog is new. It must be old before the collector's work on it is no longer part of the figure.
  gc?.();
  const waits = (await waitsOf(acquire, count)).sort((a, b) => a - b);
  isOver = true;
  return { value: median(waits), extra: { p99: waits[Math.floor(count * 0.99)] ?? Number.NaN } };
}
