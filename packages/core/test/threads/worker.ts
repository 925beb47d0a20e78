/** What the workers of the tests do; bundled by `start-worker.ts`, since Node 20 runs no TypeScript. */
import { parentPort, workerData } from "node:worker_threads";
import { Random } from "@slotkeeper/testkit/random";
import { SharedSemaphore, type SharedSemaphoreHandle, type SharedSlot } from "slotkeeper/threads";
import { type Board, CALLS, FINISHED, GRANTS, INSIDE, JOB_COUNTS, TWO_INSIDE } from "./board.ts";

export interface Job {
  readonly name: keyof typeof jobs;
  readonly handle: SharedSemaphoreHandle;
  readonly board: Board;
  readonly index: number;
  readonly rounds: number;
  readonly seed: number;
}

const job = workerData as Job;
const semaphore = SharedSemaphore.attach(job.handle);
const { board, rounds, index } = job;

/** Who is inside; more than `capacity` (1 in these jobs) at a time is what must never happen. */
function inside(work: () => void): void {
  if (Atomics.add(board, INSIDE, 1) !== 0) Atomics.add(board, TWO_INSIDE, 1);
  work();
  Atomics.sub(board, INSIDE, 1);
}

function busy(iterations: number): void {
  for (let turn = 0; turn < iterations; turn++) Atomics.load(board, INSIDE);
}

/** Counts until the first of all has finished. */
function count(round: number): void {
  if (Atomics.load(board, FINISHED) === 0) Atomics.add(board, JOB_COUNTS + index, 1);
  if (round === rounds - 1) Atomics.store(board, FINISHED, 1);
}

const nap = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function answer(value: unknown): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port of Node has no origin
  parentPort?.postMessage(value);
}

const jobs = {
  contendSync(): void {
    for (let round = 0; round < rounds; round++) {
      const slot = semaphore.acquireSync();
      inside(() => busy(300));
      count(round);
      slot.release();
    }
    answer("done");
  },

  /** Stamps before the call, after the place in the queue is taken, and in the slot. */
  async contendAsync(): Promise<void> {
    const stamps: [before: number, after: number, granted: number][] = [];
    for (let round = 0; round < rounds; round++) {
      const before = Atomics.add(board, CALLS, 1);
      const asked = semaphore.acquire();
      const after = Atomics.add(board, CALLS, 1);
      const slot = await asked;
      inside(() => stamps.push([before, after, Atomics.add(board, GRANTS, 1)]));
      count(round);
      slot.release();
    }
    answer(stamps);
  },

  /** Waits that end in every way there is: granted, timed out, aborted; in both styles. The first abort is reported. */
  async cancelAtRandom(): Promise<void> {
    const random = new Random(job.seed);
    const outcomes: Record<string, number> = {};
    for (let round = 0; round < rounds; round++) {
      const ended = await acquireSomehow(random);
      const key = typeof ended === "string" ? ended : "granted";
      outcomes[key] = (outcomes[key] ?? 0) + 1;
      if (key === "aborted" && outcomes[key] === 1) answer("aborted");
      if (typeof ended === "string") continue;
      inside(() => busy(random.next() * 50));
      if (!ended.release()) throw new Error("A slot was lost");
      if (round % 64 === 0) await nap();
    }
    answer(outcomes);
  },

  /** Hammers for ever, to be terminated somewhere in there. */
  async hammer(): Promise<void> {
    const random = new Random(job.seed);
    answer("started");
    for (;;) {
      const ended = await acquireSomehow(random);
      if (typeof ended !== "string") ended.release();
      if (random.chance(0.01)) await nap();
    }
  },

  async holdForEver(): Promise<void> {
    await semaphore.acquire();
    answer("holds");
    Atomics.wait(board, FINISHED, 0);
  },

  async waitForEver(): Promise<void> {
    const asked = semaphore.acquire();
    answer("waits");
    await asked;
    answer("got");
  },

  /** One acquire, whatever becomes of it; nothing else keeps this thread alive. */
  async waitOnce(): Promise<void> {
    const asked = semaphore.acquire();
    answer("waits");
    answer(
      await asked.then(
        () => "got",
        (error: { code: string }) => error.code,
      ),
    );
  },

  waitOnceSync(): void {
    answer("waits");
    try {
      semaphore.acquireSync().release();
      answer("got");
    } catch (error) {
      answer((error as { code: string }).code);
    }
  },

  /** Holds, is cut off from its event loop past its ttl, and comes back. */
  async overstay(): Promise<void> {
    const slot = await semaphore.acquire();
    answer("holds");
    Atomics.wait(board, FINISHED, 0);
    answer([slot.released, slot.renew(), slot.release()]);
  },

  /** Waits, and counts the turns of its event loop meanwhile. */
  async countTurns(): Promise<void> {
    let turns = 0;
    let isOver = false;
    const turn = () => {
      turns++;
      if (turns === rounds) answer("turned");
      if (!isOver) setImmediate(turn);
    };
    setImmediate(turn);
    const slot = await semaphore.acquire();
    isOver = true;
    slot.release();
    answer(turns);
  },
};

async function acquireSomehow(random: Random): Promise<SharedSlot | string> {
  const style = random.next();
  try {
    if (style < 0.3) return semaphore.acquireSync(random.chance(0.5) ? 1000 : random.next() * 0.2);
    if (style < 0.4) return semaphore.tryAcquire() ?? "no";
    if (style < 0.6) return await semaphore.acquire({ timeoutMs: random.next() * 2 });
    const controller = new AbortController();
    const asked = semaphore.acquire({ signal: controller.signal });
    if (style < 0.8) controller.abort("aborted");
    else setImmediate(() => controller.abort("aborted"));
    return await asked;
  } catch (error) {
    if (error === "aborted") return "aborted";
    if ((error as { code?: string }).code === "ACQUIRE_TIMEOUT") return "timed-out";
    throw error;
  }
}

await jobs[job.name]();
