import { expect, test } from "vitest";
import type { Bench } from "./describe-semaphore.ts";
import type { LocalSemaphoreLike } from "./subject.ts";

/** Parts of the contract that an implementation may leave out, with a reason. */
export const localCases = {
  resize: (bench: Bench) => {
    test("resize: a larger capacity wakes waiters immediately", async () => {
      const sem = bench.semaphore(1) as LocalSemaphoreLike;
      const held = await sem.acquire();
      const waiting = sem.acquire();
      sem.resize(2);
      await (await waiting).release();
      await held.release();
    });
  },
  close: (bench: Bench) => {
    test("close: waiters and later acquires reject with CLOSED", async () => {
      const sem = bench.semaphore(1) as LocalSemaphoreLike;
      const held = await sem.acquire();
      const waiting = sem.acquire();
      sem.close();
      await expect(waiting).rejects.toMatchObject({ code: "CLOSED" });
      await expect(sem.acquire()).rejects.toMatchObject({ code: "CLOSED" });
      await held.release();
    });
  },
  counters: (bench: Bench) => {
    test("counters: the numbers of holders and waiters are correct immediately", async () => {
      const sem = bench.semaphore(1) as LocalSemaphoreLike;
      const held = await sem.acquire();
      const waiting = sem.acquire();
      expect([sem.inUse, sem.waiting]).toEqual([1, 1]);
      await held.release();
      await (await waiting).release();
      expect([sem.inUse, sem.waiting]).toEqual([0, 0]);
    });
  },
} as const;
