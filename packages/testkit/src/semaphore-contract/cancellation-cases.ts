/* oxlint-disable max-lines-per-function -- a list of tests */
import { expect, test } from "vitest";
import type { Bench } from "./describe-semaphore.ts";

const rejection = (promise: Promise<unknown>) =>
  promise.then(
    () => "fulfilled",
    (reason: unknown) => ({ reason }),
  );

/** A wait that ends without a slot costs nothing. */
export function cancellationCases(bench: Bench): void {
  test("a cancelled waiter consumes no slot", async () => {
    const sem = bench.semaphore(1);
    const controller = new AbortController();
    const held = await sem.acquire();
    const cancelled = rejection(sem.acquire({ signal: controller.signal }));
    await bench.queued(sem, 1);
    const next = sem.acquire();
    await bench.queued(sem, 2);
    controller.abort("stop");
    expect(await cancelled).toEqual({ reason: "stop" });
    await bench.queued(sem, 1);
    await held.release();
    await (await next).release();
    expect(await (await sem.tryAcquire())?.release()).toBe(true);
  });

  test("an abort rejects with the signal's reason itself, whatever it is", async () => {
    const sem = bench.semaphore(1);
    const held = await sem.acquire();
    for (const reason of [new Error("mine"), "text", 0, null, { any: "thing" }]) {
      const controller = new AbortController();
      const waiter = rejection(sem.acquire({ signal: controller.signal }));
      controller.abort(reason);
      expect(((await waiter) as { reason: unknown }).reason).toBe(reason);
    }
    await held.release();
  });

  test("an already aborted signal rejects whether or not a slot is free", async () => {
    const sem = bench.semaphore(1);
    const reason = new Error("before");
    await expect(sem.acquire({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    const held = await sem.acquire();
    await expect(sem.acquire({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    await held.release();
  });

  test("an abort after the grant changes nothing: the caller owns the slot", async () => {
    const sem = bench.semaphore(1);
    const controller = new AbortController();
    const slot = await sem.acquire({ signal: controller.signal });
    controller.abort();
    expect([slot.released, await sem.tryAcquire()]).toEqual([false, undefined]);
    await slot.release();
  });

  test("a timeout rejects with ACQUIRE_TIMEOUT and a message with the waiting time, and consumes no slot", async () => {
    const sem = bench.semaphore(1);
    const held = await sem.acquire();
    const error = await sem.acquire({ timeoutMs: 100 }).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: "ACQUIRE_TIMEOUT", retryable: true, waitedMs: expect.any(Number) });
    expect((error as { waitedMs: number }).waitedMs).toBeGreaterThanOrEqual(99);
    await bench.queued(sem, 0);
    await held.release();
    expect(await (await sem.tryAcquire())?.release()).toBe(true);
  });

  test("timeoutMs 0 does not wait", async () => {
    const sem = bench.semaphore(1);
    const slot = await sem.acquire({ timeoutMs: 0 });
    await expect(sem.acquire({ timeoutMs: 0 })).rejects.toMatchObject({ code: "ACQUIRE_TIMEOUT" });
    await bench.queued(sem, 0);
    await slot.release();
    await (await sem.acquire({ timeoutMs: 0 })).release();
  });
}
