import { settled } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { runProgram as runInNode } from "./hosts.ts";
import { outcome } from "./outcome.ts";
import { useWorld } from "./world.ts";

const world = useWorld();

describe("which timers keep a process alive", () => {
  test("the timeout of an acquire does, because a caller awaits it", async () => {
    const sem = world().semaphore(1);
    const held = await sem.acquire();
    const waiter = outcome(sem.acquire({ timeoutMs: 10 }));
    expect(world().clock.keepingAlive).toBe(1);
    held.release();
    await settled();
    expect(world().clock.keepingAlive).toBe(0);
    waiter.value.release();
  });

  test("a ttl does only while a caller waits for that semaphore", async () => {
    const sem = world().semaphore(1, { ttlMs: 10 });
    const held = await sem.acquire();
    const { clock } = world();
    expect([clock.pending, clock.keepingAlive]).toEqual([1, 0]);
    const controller = new AbortController();
    const waiter = outcome(sem.acquire({ signal: controller.signal }));
    expect([clock.pending, clock.keepingAlive]).toEqual([1, 1]);
    controller.abort();
    expect([clock.pending, clock.keepingAlive]).toEqual([1, 0]);
    await settled();
    expect(waiter.status).toBe("rejected");
    held.release();
  });

  test("a ttl that begins while a caller waits does, too", async () => {
    const sem = world().semaphore(1);
    const held = await sem.acquire();
    const waiter = outcome(sem.acquire());
    expect(world().clock.keepingAlive).toBe(0);
    held.renew(10);
    expect(world().clock.keepingAlive).toBe(1);
    held.renew(20);
    expect(world().clock.keepingAlive).toBe(1);
    world().clock.advance(20);
    expect(world().clock.keepingAlive).toBe(0);
    await settled();
    waiter.value.release();
  });

  test("after a hand-over the ttl of the new holder does only if another caller still waits", async () => {
    const sem = world().semaphore(1, { ttlMs: 10 });
    const held = await sem.acquire();
    const waiters = [outcome(sem.acquire()), outcome(sem.acquire())];
    held.release();
    expect(world().clock.keepingAlive).toBe(1);
    await settled();
    waiters[0]?.value.release();
    expect([world().clock.pending, world().clock.keepingAlive]).toEqual([1, 0]);
    await settled();
    waiters[1]?.value.release();
  });

  test("a ttl with waiters whose timer fired early and was restarted still does", async () => {
    const sem = world().semaphore(1, { ttlMs: 10 });
    const held = await sem.acquire();
    const waiter = outcome(sem.acquire());
    world().clock.advance(5);
    held.renew();
    world().clock.advance(5);
    expect([held.released, world().clock.keepingAlive]).toEqual([false, 1]);
    world().clock.advance(5);
    await settled();
    waiter.value.release();
  });

  test("the ttl of a pool's slot does while a caller waits for the key of that slot", async () => {
    const pool = world().pool({ max: 2, maxPerKey: 1, ttlMs: 10 });
    const held = await pool.acquire("a");
    expect(world().clock.keepingAlive).toBe(0);
    const waiter = outcome(pool.acquire("a"));
    const { keepingAlive } = world().clock;
    held.release();
    await settled();
    waiter.value.release();
    pool.close();
    expect(keepingAlive).toBe(1);
  });

  test("the ttl of a pool's slot does while a caller waits for the global limit", async () => {
    const pool = world().pool({ max: 1, maxPerKey: 1, ttlMs: 10 });
    const held = await pool.acquire("a");
    const waiter = outcome(pool.acquire("b"));
    expect(world().clock.keepingAlive).toBe(1);
    held.release();
    await settled();
    expect(world().clock.keepingAlive).toBe(0);
    waiter.value.release();
    pool.close();
  });

  test("sweep timers never do", async () => {
    const keyed = world().keyed(1, { idleMs: 10, sweepEveryMs: 10 });
    const held = await keyed.acquire("a");
    const waiter = outcome(keyed.acquire("a"));
    expect([world().clock.pending, world().clock.keepingAlive]).toEqual([1, 0]);
    world().clock.advance(25);
    expect([world().clock.pending, world().clock.keepingAlive]).toEqual([1, 0]);
    held.release();
    await settled();
    waiter.value.release();
    keyed.close();
  });

  test("many semaphores on one clock keep nothing alive after their waiters have left", async () => {
    const sems = [10, 20, 30].map((ttlMs) => world().semaphore(1, { ttlMs }));
    const held = await Promise.all(sems.map((sem) => sem.acquire()));
    const waiters = sems.map((sem) => outcome(sem.acquire({ timeoutMs: 5 })));
    world().clock.advance(5);
    expect([world().clock.pending, world().clock.keepingAlive]).toEqual([3, 0]);
    await settled();
    expect(waiters.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    for (const slot of held) slot.release();
  });
});

const runProgram = (program: string) => runInNode(`import { KeyedSemaphore, Semaphore } from "slotkeeper"; ${program}`);

describe("a real process", () => {
  test("ends although slots with a ttl are held and idle keys wait for a sweep", async () => {
    const program = `
      new Semaphore(1, { ttlMs: 3_600_000 }).tryAcquire();
      new KeyedSemaphore(1).tryAcquire("key");
      console.log("end of main");`;
    expect(await runProgram(program)).toEqual({ code: 0, output: "end of main\n" });
  });

  test("runs until a waiter has timed out", async () => {
    const program = `
      const sem = new Semaphore(1);
      sem.tryAcquire();
      sem.acquire({ timeoutMs: 50 }).catch((error) => console.log(error.code));`;
    expect(await runProgram(program)).toEqual({ code: 0, output: "ACQUIRE_TIMEOUT\n" });
  });

  test("runs until the slot of hanging work has expired, if that aborts the run", async () => {
    const program = `
      import { Limiter } from "slotkeeper/limiter";
      const options = { ttlMs: 50, abortOnExpiry: true };
      for (const gate of [new Semaphore(1, options), new Limiter({ slots: 1, ...options })])
        await gate.run(() => new Promise(() => {})).catch((error) => console.log(error.code));`;
    expect(await runProgram(program)).toEqual({ code: 0, output: "SLOT_EXPIRED\nSLOT_EXPIRED\n" });
  });

  test("runs until a waiter gets the slot of an expired holder, and ends although that slot has a ttl", async () => {
    const program = `
      const sem = new Semaphore(1, { ttlMs: 50 });
      sem.tryAcquire();
      sem.acquire().then((slot) => { slot.renew(3_600_000); console.log("granted"); });`;
    expect(await runProgram(program)).toEqual({ code: 0, output: "granted\n" });
  });
});
