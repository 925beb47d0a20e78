// Memory and cost of the fair queue at scale, in virtual time: `node --expose-gc bench/dist/queue/scale.js [--short]`.
// Bytes are of the heap after a full collection; costs are ratios taken in one run, medians of five rounds.
import { FairQueue, MemoryStore } from "@slotkeeper/queue";
import { drained, VirtualClock } from "@slotkeeper/testkit/simulator";

const isShort = process.argv.includes("--short");
const SIZE = isShort ? 10_000 : 100_000;
const collect = globalThis.gc;
if (collect === undefined) throw new Error("Run with --expose-gc");

class Bench {
  readonly clock = new VirtualClock();
  readonly queue: FairQueue;
  #ids = 0;

  constructor() {
    const newId = () => `id-${this.#ids++}`;
    this.queue = new FairQueue({
      store: new MemoryStore({ clock: this.clock }),
      clock: this.clock,
      newSessionId: newId,
      newSecret: newId,
      instance: "bench",
      config: {
        globalMaxWaiters: -1,
        maxWaitersPerHost: 0,
        maxSlotPerHost: 1,
        maxSlotPerIp: -1,
        maxWaitMs: 20_000,
        sessionIdleSeconds: 90,
      },
    });
  }

  async take(host: string, bucket: string): Promise<string> {
    const answer = await this.queue.begin({ host, hostname: host, bucket, waitMs: 1 });
    if (answer.result !== "granted") throw new Error(`Expected a slot, got ${answer.result}`);
    return answer.slotToken;
  }

  async wait(host: string, bucket: string): Promise<void> {
    await this.queue.begin({ host, hostname: host, bucket });
  }
}

function heapBytes(): number {
  collect?.();
  collect?.();
  return process.memoryUsage().heapUsed;
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

async function memory(): Promise<void> {
  const bench = new Bench();
  const empty = heapBytes();
  for (let index = 0; index < SIZE; index++) {
    bench.queue.release({ slotToken: await bench.take(`host-${index}`, "a") });
  }
  await drained();
  await bench.clock.run(20_001);
  await bench.queue.sweep();
  const idle = heapBytes();
  console.log(`idle host, within its 90 s of grace: ${Math.round((idle - empty) / SIZE)} B`);
  await bench.clock.run(200_000);
  await bench.queue.sweep();
  const after = heapBytes();
  console.log(`idle host, after it: ${Math.round((after - empty) / SIZE)} B`);
  await bench.take("one", "z");
  for (let index = 0; index < SIZE; index++) await bench.wait("one", `bucket-${index % 1000}`);
  await drained();
  console.log(`waiting session (of 1,000 buckets at one host): ${Math.round((heapBytes() - after) / SIZE)} B`);
  await bench.clock.run(400_000);
  await bench.queue.sweep();
  console.log(`after all have gone: ${Math.round((heapBytes() - after) / SIZE)} B`);
  const each = new Bench();
  const before = heapBytes();
  for (let index = 0; index < SIZE; index++) {
    await each.take(`host-${index}`, "z");
    await each.wait(`host-${index}`, "a");
  }
  console.log(`host with one holder and one waiter: ${Math.round((heapBytes() - before) / SIZE)} B`);
  each.queue.close();
}

/** A day of callers that each use a new host once. The heap is measured every hour. */
async function churn(): Promise<void> {
  const bench = new Bench();
  const perHour = SIZE / 240;
  const hours: number[] = [];
  for (let hour = 0; hour < 24; hour++) {
    for (let index = 0; index < perHour; index++) {
      const host = `host-${hour}-${index}`;
      const slotToken = await bench.take(host, `bucket-${index}`);
      if (index % 10 === 0) await bench.wait(host, "ghost");
      if (index % 5 !== 0) bench.queue.release({ slotToken });
      await bench.clock.run(3_600_000 / perHour);
    }
    hours.push(heapBytes());
  }
  const first = median(hours.slice(2, 7));
  const last = median(hours.slice(-5));
  console.log(
    `a day of ${SIZE / 10} callers: heap ${(first / 1e6).toFixed(1)} MB in the first hours, ${(last / 1e6).toFixed(1)} MB in the last`,
  );
}

/**
 * Passes one slot of a host on: a release, a grant to the next waiter, and a new waiter, so that the queue keeps its
 * length.
 */
async function handOver(bench: Bench, count: number, buckets: number): Promise<number> {
  const polls: Promise<unknown>[] = [];
  let token = await bench.take("own", "z");
  const startedAt = performance.now();
  for (let index = 0; index < count; index++) {
    polls.push(bench.queue.begin({ host: "own", hostname: "own", bucket: `new-${index % buckets}`, waitMs: 1e6 }));
    bench.queue.release({ slotToken: token });
    const granted = (await Promise.race(polls)) as { slotToken: string };
    token = granted.slotToken;
    polls.length = 0;
  }
  const elapsed = performance.now() - startedAt;
  bench.queue.release({ slotToken: token });
  await drained();
  return (1000 * elapsed) / count;
}

async function cycleCost(): Promise<void> {
  const sizes = [1, SIZE / 100, SIZE / 10, SIZE];
  const others = await Promise.all(sizes.map(async (size) => ({ size, bench: await withOtherHosts(size) })));
  report("other hosts with a waiter", await rounds(others));
  const own = await Promise.all(sizes.map(async (size) => ({ size, bench: await withOwnWaiters(size) })));
  report("waiters at the own host, clients away", await rounds(own));
}

async function rounds(subjects: readonly { size: number; bench: Bench }[]): Promise<Map<number, number[]>> {
  const costs = new Map(subjects.map(({ size }) => [size, [] as number[]]));
  for (let round = 0; round < 6; round++) {
    for (const { size, bench } of subjects) {
      const us = await handOver(bench, 2_000, 10);
      if (round > 0) costs.get(size)?.push(us);
    }
  }
  return costs;
}

function report(what: string, costs: ReadonlyMap<number, readonly number[]>): void {
  const base = median([...costs.values()][0] ?? []);
  for (const [size, values] of costs) {
    const spread = `${Math.min(...values).toFixed(0)}–${Math.max(...values).toFixed(0)}`;
    console.log(
      `${what}: ${size}: ${(median(values) / base).toFixed(2)} × (${median(values).toFixed(0)} µs a hand-over, ${spread})`,
    );
  }
}

async function withOtherHosts(count: number): Promise<Bench> {
  const bench = new Bench();
  for (let index = 0; index < count; index++) {
    await bench.take(`other-${index}`, "z");
    await bench.wait(`other-${index}`, "a");
  }
  return bench;
}

/** The waiters are away, so the hand-over is between new sessions, and the others only have to be skipped. */
async function withOwnWaiters(count: number): Promise<Bench> {
  const bench = new Bench();
  const token = await bench.take("own", "z");
  for (let index = 0; index < count; index++) await bench.wait("own", `bucket-${index % 1000}`);
  await bench.clock.run(1_500);
  bench.queue.release({ slotToken: token });
  await drained();
  return bench;
}

await memory();
await churn();
await cycleCost();
process.exit(0);
