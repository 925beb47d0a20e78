/* oxlint-disable max-lines-per-function -- a list of tests */
import { expect, test } from "vitest";
import type { Bench } from "./describe-semaphore.ts";

/** `run` holds the slot only for its scope. */
export function runCases(bench: Bench): void {
  test("run gives the work a slot, returns its result, and releases", async () => {
    const sem = bench.semaphore(1);
    const result = await sem.run(async (slot) => {
      expect([slot.released, await sem.tryAcquire()]).toEqual([false, undefined]);
      return "result";
    });
    expect(result).toBe("result");
    expect(await (await sem.tryAcquire())?.release()).toBe(true);
  });

  test("run releases when the work throws or rejects, and passes the error on untouched", async () => {
    const sem = bench.semaphore(1);
    const error = new Error("work failed");
    const thrown = sem.run(() => {
      throw error;
    });
    await expect(thrown).rejects.toBe(error);
    await expect(sem.run(() => Promise.reject(error))).rejects.toBe(error);
    expect(await (await sem.tryAcquire())?.release()).toBe(true);
  });

  test("work may release its slot early; run does not release the slot of another holder", async () => {
    const sem = bench.semaphore(1);
    const next = await sem.run(async (slot) => {
      await slot.release();
      return sem.acquire();
    });
    expect([next.released, await sem.tryAcquire()]).toEqual([false, undefined]);
    await next.release();
  });

  test("run with an already aborted signal never starts the work", async () => {
    const sem = bench.semaphore(1);
    let started = false;
    await expect(sem.run(() => (started = true), { signal: AbortSignal.abort("no") })).rejects.toBe("no");
    expect(started).toBe(false);
    expect(await (await sem.tryAcquire())?.release()).toBe(true);
  });

  test("an abort while the work runs does not release the slot: the work decides", async () => {
    const sem = bench.semaphore(1);
    const controller = new AbortController();
    const result = await sem.run(
      async (slot) => {
        controller.abort();
        expect([slot.released, await sem.tryAcquire()]).toEqual([false, undefined]);
        return "done";
      },
      { signal: controller.signal },
    );
    expect(result).toBe("done");
  });

  test("run times out as acquire does", async () => {
    const sem = bench.semaphore(1);
    const held = await sem.acquire();
    await expect(sem.run(() => 0, { timeoutMs: 50 })).rejects.toMatchObject({ code: "ACQUIRE_TIMEOUT" });
    await held.release();
  });
}
