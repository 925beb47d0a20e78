/* oxlint-disable max-lines-per-function -- a list of tests */
import { expect, test } from "vitest";
import type { Bench } from "./describe-semaphore.ts";

/** First come, first served; a freed slot goes to the first waiter and to no other caller. */
export function orderCases(bench: Bench): void {
  test("an acquire gets a free slot, and its release makes it free again", async () => {
    const sem = bench.semaphore(1);
    const slot = await sem.acquire();
    expect(await sem.tryAcquire()).toBeUndefined();
    expect(await slot.release()).toBe(true);
    expect(await (await sem.tryAcquire())?.release()).toBe(true);
  });

  test("waiters are served in the order of their arrival", async () => {
    const sem = bench.semaphore(1);
    const order: number[] = [];
    const first = await sem.acquire();
    const all: Promise<void>[] = [];
    for (const index of [0, 1, 2, 3, 4]) {
      all.push(
        sem.acquire(index % 2 ? { timeoutMs: 20_000 } : undefined).then(async (slot) => {
          order.push(index);
          await slot.release();
        }),
      );
      await bench.queued(sem, index + 1);
    }
    await first.release();
    await Promise.all(all);
    expect(order).toEqual([0, 1, 2, 3, 4]);
  });

  test("no call can take a released slot while another caller waits", async () => {
    const sem = bench.semaphore(1);
    const held = await sem.acquire();
    const next = sem.acquire();
    await bench.queued(sem, 1);
    expect(await sem.tryAcquire()).toBeUndefined();
    await held.release();
    expect(await sem.tryAcquire()).toBeUndefined();
    await (await next).release();
  });

  test("a wide waiter gets its slots together and is never overtaken", async () => {
    const sem = bench.semaphore(2);
    const held = await sem.acquire();
    const wide = sem.acquire({ width: 2 });
    await bench.queued(sem, 1);
    expect(await sem.tryAcquire()).toBeUndefined();
    await held.release();
    const both = await wide;
    expect(await sem.tryAcquire()).toBeUndefined();
    await both.release();
  });

  test("there are never more holders than slots, and all are used", async () => {
    const sem = bench.semaphore(3);
    let running = 0;
    let most = 0;
    const work = async () => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setTimeout(resolve, 5));
      running--;
    };
    await Promise.all(Array.from({ length: 30 }, () => sem.run(work)));
    expect([most, running]).toEqual([3, 0]);
  });

  test("semaphores with the same name share their slots, those with different names do not", async () => {
    const sem = bench.semaphore(1);
    const slot = await sem.acquire();
    expect(await bench.again(sem).tryAcquire()).toBeUndefined();
    const other = await bench.semaphore(1).tryAcquire();
    expect(await other?.release()).toBe(true);
    await slot.release();
    expect(await (await bench.again(sem).tryAcquire())?.release()).toBe(true);
  });
}
