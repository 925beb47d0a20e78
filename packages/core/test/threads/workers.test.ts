import { SharedSemaphore, watch } from "slotkeeper/threads";
import { describe, expect, it } from "vitest";
import { FINISHED, JOB_COUNTS, newBoard, TWO_INSIDE } from "./board.ts";
import { startWorker, terminate } from "./start-worker.ts";

const isLong = process.env["SLOTKEEPER_LONG"] === "1";

/** Jain's index: 1 when all have the same, 1/n when one has all. */
function jain(shares: readonly number[]): number {
  const sum = shares.reduce((total, share) => total + share, 0);
  return sum ** 2 / (shares.length * shares.reduce((total, share) => total + share ** 2, 0));
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 1));
}

/** Starts the workers, lets all of them queue, then lets them go. */
async function contend(name: "contendSync" | "contendAsync", workers: number, rounds: number) {
  const semaphore = SharedSemaphore.create(1);
  const board = newBoard();
  const mine = semaphore.tryAcquire();
  const started = await Promise.all(
    Array.from({ length: workers }, (_, index) =>
      startWorker({ name, handle: semaphore.handle, board, index, rounds }),
    ),
  );
  await until(() => semaphore.waiting === workers);
  mine?.release();
  const answers = await Promise.all(started.map(({ next }) => next()));
  const shares = [...board.subarray(JOB_COUNTS, JOB_COUNTS + workers)];
  return { semaphore, board, answers, shares };
}

describe("ten workers that want one slot a thousand times each", () => {
  it("are never inside together and get equal shares when they block", async () => {
    const { semaphore, board, shares } = await contend("contendSync", 10, 1000);
    expect(board[TWO_INSIDE]).toBe(0);
    expect(jain(shares)).toBeGreaterThanOrEqual(0.95);
    expect([semaphore.inUse, semaphore.waiting]).toEqual([0, 0]);
  });

  it("are never inside together, get equal shares, and are served in the order of arrival when they await (DISPATCH3)", async () => {
    const { semaphore, board, shares, answers } = await contend("contendAsync", 10, 1000);
    expect(board[TWO_INSIDE]).toBe(0);
    expect(jain(shares)).toBeGreaterThanOrEqual(0.95);
    const stamps = (answers as [before: number, after: number, granted: number][][]).flat();
    expect(stamps.length).toBe(10_000);
    expect(inversions(stamps)).toBe(0);
    expect([semaphore.inUse, semaphore.waiting]).toEqual([0, 0]);
  });

  it("would be caught if one call that began after another had its place were served before it", () => {
    expect(
      inversions([
        [0, 1, 1],
        [2, 3, 0],
      ]),
    ).toBe(1);
  });
});

/** How many had their place in the queue before another began to ask, and were served after it. */
function inversions(stamps: readonly (readonly [before: number, after: number, granted: number])[]): number {
  let latestCall = -1;
  let found = 0;
  for (const [before, after] of stamps.toSorted((a, b) => a[2] - b[2])) {
    if (after < latestCall) found++;
    latestCall = Math.max(latestCall, before);
  }
  return found;
}

describe("what another thread does", () => {
  for (const name of ["waitOnce", "waitOnceSync"] as const) {
    it(`a release reaches ${name}`, async () => {
      const semaphore = SharedSemaphore.create(1);
      const mine = semaphore.tryAcquire();
      const { next } = await startWorker({ name, handle: semaphore.handle, board: newBoard() });
      expect(await next()).toBe("waits");
      await until(() => semaphore.waiting === 1);
      expect(mine?.release()).toBe(true);
      expect(await next()).toBe("got");
    });

    it(`close rejects ${name}`, async () => {
      const semaphore = SharedSemaphore.create(1);
      const mine = semaphore.tryAcquire();
      const { next } = await startWorker({ name, handle: semaphore.handle, board: newBoard() });
      await next();
      await until(() => semaphore.waiting === 1);
      semaphore.close();
      expect(await next()).toBe("CLOSED");
      expect(mine?.release()).toBe(true);
    });

    it(`resize wakes ${name}`, async () => {
      const semaphore = SharedSemaphore.create(1);
      semaphore.tryAcquire();
      const { next } = await startWorker({ name, handle: semaphore.handle, board: newBoard() });
      await next();
      await until(() => semaphore.waiting === 1);
      semaphore.resize(2);
      expect(await next()).toBe("got");
    });
  }

  it("a ttl takes the slot back from a thread that is cut off, and its late release frees nothing", async () => {
    const semaphore = SharedSemaphore.create(1, { ttlMs: 20 });
    const board = newBoard();
    const { next } = await startWorker({ name: "overstay", handle: semaphore.handle, board });
    expect(await next()).toBe("holds");
    const mine = await semaphore.acquire();
    Atomics.store(board, FINISHED, 1);
    Atomics.notify(board, FINISHED);
    expect(await next()).toEqual([true, false, false]);
    expect(mine.released).toBe(false);
    expect(semaphore.inUse).toBe(1);
  });

  it("a waiting thread's event loop goes on turning, and ours too", async () => {
    const semaphore = SharedSemaphore.create(1);
    const mine = semaphore.tryAcquire();
    const { next } = await startWorker({
      name: "countTurns",
      handle: semaphore.handle,
      board: newBoard(),
      rounds: 1000,
    });
    // Answered from within the wait, after a thousand turns; and the holder, this thread, must turn to receive it.
    expect(await next()).toBe("turned");
    expect(semaphore.waiting).toBe(1);
    mine?.release();
    expect(await next()).toBeGreaterThanOrEqual(1000);
  });
});

describe("threads that give up at random", () => {
  it("swallow no wake-up and lose no slot (DISPATCH5, DISPATCH6)", { timeout: 3_600_000 }, async () => {
    const semaphore = SharedSemaphore.create(1);
    const board = newBoard();
    const rounds = isLong ? 750_000 : 4000;
    const startedAt = performance.now();
    // Held until each thread has given up once: otherwise one thread may end before the next has started.
    const mine = semaphore.tryAcquire();
    const workers = await Promise.all(
      [1, 2, 3, 4].map((seed) =>
        startWorker({ name: "cancelAtRandom", handle: semaphore.handle, board, rounds, seed }),
      ),
    );
    for (const { next } of workers) expect(await next()).toBe("aborted");
    mine?.release();
    const outcomes = (await Promise.all(workers.map(({ next }) => next()))) as Record<string, number>[];
    if (isLong) console.log("cancelAtRandom", outcomes, Math.round(performance.now() - startedAt), "ms");
    expect(board[TWO_INSIDE]).toBe(0);
    for (const { granted = 0 } of outcomes) expect(granted).toBeGreaterThan(0);
    expect([semaphore.inUse, semaphore.waiting]).toEqual([0, 0]);
    const slot = semaphore.tryAcquire();
    expect(slot).toBeDefined();
  });
});

describe("a worker that is terminated", () => {
  it("while it holds gives its slot to a waiter", async () => {
    const semaphore = SharedSemaphore.create(1);
    const { worker, next } = await startWorker({ name: "holdForEver", handle: semaphore.handle, board: newBoard() });
    watch(worker, semaphore);
    expect(await next()).toBe("holds");
    const asked = semaphore.acquire();
    await terminate(worker);
    const slot = await asked;
    expect(slot.release()).toBe(true);
    expect([semaphore.inUse, semaphore.waiting]).toEqual([0, 0]);
  });

  it("while it waits leaves the queue", async () => {
    const semaphore = SharedSemaphore.create(1);
    const mine = semaphore.tryAcquire();
    const { worker, next } = await startWorker({ name: "waitForEver", handle: semaphore.handle, board: newBoard() });
    watch(worker, semaphore);
    await next();
    await until(() => semaphore.waiting === 1);
    const behind = semaphore.acquire();
    await terminate(worker);
    expect(semaphore.waiting).toBe(1);
    mine?.release();
    expect((await behind).release()).toBe(true);
  });

  it("in the middle of anything leaves the capacity whole and the others running (DISPATCH7)", {
    timeout: 3_600_000,
  }, async () => {
    const semaphore = SharedSemaphore.create(2);
    const board = newBoard();
    const deaths = isLong ? 300 : 15;
    const steady = await startWorker({ name: "hammer", handle: semaphore.handle, board, seed: 99 });
    await steady.next();
    for (let death = 0; death < deaths; death++) {
      const { worker, next } = await startWorker({ name: "hammer", handle: semaphore.handle, board, seed: death });
      watch(worker, semaphore);
      await next();
      for (let turn = 0; turn < death % 7; turn++) await new Promise((resolve) => setImmediate(resolve));
      await terminate(worker);
      // Both slots can be had, by a thread in the queue with the others.
      const both = await Promise.all([semaphore.acquire(), semaphore.acquire()]);
      expect(both.map((slot) => slot.release())).toEqual([true, true]);
    }
    watch(steady.worker, semaphore);
    await terminate(steady.worker);
    expect([semaphore.inUse, semaphore.waiting]).toEqual([0, 0]);
    expect(semaphore.tryAcquire()).toBeDefined();
    expect(semaphore.tryAcquire()).toBeDefined();
    expect(semaphore.tryAcquire()).toBeUndefined();
  });
});
