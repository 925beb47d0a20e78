import { Limiter } from "slotkeeper/limiter";
import { settled } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { Deferred } from "./deferred.ts";
import { outcome } from "./outcome.ts";
import { useWorld } from "./world.ts";

const world = useWorld();

describe("run", () => {
  test("run calls the work with a slot, returns its result, and releases the slot", async () => {
    const sem = world().semaphore(1);
    const result = await sem.run((slot) => {
      expect([slot.released, sem.inUse]).toEqual([false, 1]);
      return "result";
    });
    expect([result, sem.inUse]).toEqual(["result", 0]);
  });

  test("run releases when the work throws or rejects, and rejects with the same error", async () => {
    const sem = world().semaphore(1);
    const error = new Error("work failed");
    const thrown = outcome(
      sem.run(() => {
        throw error;
      }),
    );
    const rejected = outcome(sem.run(() => Promise.reject(error)));
    await settled();
    expect([thrown.reason, rejected.reason, sem.inUse]).toEqual([error, error, 0]);
    expect(thrown.reason).toBe(error);
  });

  test("if the work throws synchronously, run rejects and does not throw, with abortOnExpiry too", async () => {
    const sem = world().semaphore(1, { abortOnExpiry: true, ttlMs: 10 });
    const error = new Error("at once");
    await expect(
      sem.run(() => {
        throw error;
      }),
    ).rejects.toBe(error);
    expect(sem.inUse).toBe(0);
  });

  test("work may release its slot early; run then does not release the slot of another caller", async () => {
    const sem = world().semaphore(1);
    const next = await sem.run(async (slot) => {
      const waiter = outcome(sem.acquire());
      slot.release();
      await settled();
      return waiter;
    });
    expect([next.status, sem.inUse]).toEqual(["fulfilled", 1]);
    next.value.release();
  });

  test("run re-checks the signal before it starts the work, and releases the slot", async () => {
    const sem = world().semaphore(1);
    const controller = new AbortController();
    const reason = new Error("changed my mind");
    const held = await sem.acquire();
    let started = false;
    const run = outcome(sem.run(() => (started = true), { signal: controller.signal }));
    const next = outcome(sem.acquire());
    held.release();
    controller.abort(reason);
    await settled();
    expect([run.reason, started]).toEqual([reason, false]);
    expect(next.status).toBe("fulfilled");
    next.value.release();
  });

  test("run with an already aborted signal never starts the work", async () => {
    const sem = world().semaphore(1);
    let started = false;
    const run = outcome(sem.run(() => (started = true), { signal: AbortSignal.abort("no") }));
    await settled();
    expect([run.status, run.reason, started, sem.inUse]).toEqual(["rejected", "no", false, 0]);
  });

  test("an abort while the work runs does not end the work or release its slot", async () => {
    const sem = world().semaphore(1);
    const controller = new AbortController();
    const work = new Deferred<string>();
    const run = outcome(sem.run(() => work.promise, { signal: controller.signal }));
    await settled();
    controller.abort();
    await settled();
    expect([run.status, sem.inUse]).toEqual(["pending", 1]);
    work.resolve("done");
    await settled();
    expect(run.value).toBe("done");
  });

  test("run times out as acquire does", async () => {
    const sem = world().semaphore(1);
    const held = await sem.acquire();
    const run = outcome(sem.run(() => 0, { timeoutMs: 10 }));
    await world().clock.advanceAsync(10);
    expect(run.reason).toMatchObject({ code: "ACQUIRE_TIMEOUT" });
    held.release();
  });

  test("the slot is handed over before the caller gets the result", async () => {
    const sem = world().semaphore(1);
    const order: string[] = [];
    const first = sem.run(() => "x").then(() => order.push(`first ended, ${sem.inUse} in use`));
    const second = sem.run(async () => {
      order.push("second started");
      await settled();
    });
    await Promise.all([first, second]);
    expect(order).toContain("first ended, 1 in use");
  });
});

describe("map and wrap", () => {
  test("map returns results in the order of the items and never runs more at once than the capacity", async () => {
    const sem = world().semaphore(2);
    let running = 0;
    let most = 0;
    const results = await sem.map(new Set([5, 1, 3, 2]), async (item, index) => {
      most = Math.max(most, ++running);
      await settled(item);
      running--;
      return `${index}:${item}`;
    });
    expect(results).toEqual(["0:5", "1:1", "2:3", "3:2"]);
    expect(most).toBe(2);
  });

  test("map of an empty list returns an empty list", async () => {
    expect(
      await world()
        .semaphore(1)
        .map([], () => 1),
    ).toEqual([]);
  });

  test("map rejects with the first failure and leaves no slot held", async () => {
    const sem = world().semaphore(2);
    const error = new Error("item 1");
    const mapped = outcome(
      sem.map([0, 1, 2, 3], (item) => {
        if (item === 1) throw error;
        return item;
      }),
    );
    await settled();
    expect(mapped.reason).toBe(error);
    await sem.idle();
    await settled();
    expect([sem.inUse, sem.waiting]).toEqual([0, 0]);
  });

  test("a wrapped function keeps `this`, with a free slot and after a wait", async () => {
    const sem = world().semaphore(1);
    const counter = {
      step: 2,
      total: 0,
      add: sem.wrap(async function add(this: { step: number; total: number }, times: number) {
        await settled();
        this.total += this.step * times;
        return this.total;
      }),
    };
    expect(await Promise.all([counter.add(1), counter.add(2)])).toEqual([2, 6]);
    const limited = new Limiter({ slots: 1 }).wrap(function who(this: unknown) {
      return this;
    });
    expect(await limited.call("me")).toEqual("me");
  });

  test("a wrapped function takes the same arguments, returns the same result, and holds a slot while it runs", async () => {
    const sem = world().semaphore(1);
    const add = sem.wrap((a: number, b: number) => {
      expect(sem.inUse).toBe(1);
      return a + b;
    });
    expect(await Promise.all([add(1, 2), add(3, 4)])).toEqual([3, 7]);
    expect(sem.stats().acquired).toBe(2);
  });
});
