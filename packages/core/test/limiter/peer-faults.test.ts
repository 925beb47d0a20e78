/** Faults of bottleneck, p-queue, p-throttle and other limiters: each of them must not be ours. */
import { getEventListeners } from "node:events";
import { Limiter } from "slotkeeper/limiter";
import { settled } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";

import { Deferred } from "../deferred.ts";
import { runProgram as runInNode } from "../hosts.ts";
import { useLimiterWorld } from "./limiter-world.ts";

const world = useLimiterWorld();

/** The most that was granted in any window of that length. */
function mostIn(windowMs: number, times: readonly number[]): number {
  return Math.max(...times.map((from) => times.filter((at) => at >= from && at < from + windowMs).length));
}

const timesOf = (grants: readonly string[]): number[] => grants.map((grant) => Number(grant.split(" ")[1]));

describe("a double rate at window edges", () => {
  test("a strict budget grants its limit in any window, not in each of two windows that touch", async () => {
    const limiter = world().limiter({ budgets: { requests: { limit: 10, perMs: 1_000, strict: true } } });
    await world().clock.advanceAsync(950);
    for (let i = 0; i < 40; i++) world().pass(limiter, `${i}`);
    await world().clock.advanceAsync(5_000);
    expect([world().grants.length, mostIn(1_000, timesOf(world().grants))]).toEqual([40, 10]);
  });

  test("a bucket grants at most its burst and what flows in, wherever the interval begins", async () => {
    const limiter = world().limiter({ budgets: { requests: { limit: 10, perMs: 1_000, burst: 1 } } });
    await world().clock.advanceAsync(999);
    for (let i = 0; i < 40; i++) world().pass(limiter, `${i}`);
    await world().clock.advanceAsync(5_000);
    expect([world().grants.length, mostIn(1_000, timesOf(world().grants))]).toEqual([40, 10]);
  });
});

const runProgram = (program: string) => runInNode(`import { Limiter } from "slotkeeper/limiter"; ${program}`);

describe("a timer that keeps the process alive", () => {
  test("an idle limiter has no timer, whatever it did before", async () => {
    const limiter = world().limiter({ slots: 1, budgets: { requests: { limit: 2, perMs: 1_000 } }, perKey: {} });
    for (let i = 0; i < 5; i++) world().pass(limiter, `${i}`, { key: i });
    await settled();
    expect([world().clock.pending, world().clock.keepingAlive]).toEqual([1, 1]);
    await world().clock.advanceAsync(2_000);
    expect([world().grants.length, world().clock.pending]).toEqual([5, 0]);
  });

  test("waiters for a slot need no timer at all", async () => {
    const limiter = world().limiter({ slots: 1, budgets: { requests: { limit: 100, perMs: 1_000 } } });
    const held = await limiter.acquire();
    world().pass(limiter, "waiter");
    expect(world().clock.pending).toBe(0);
    held.release();
    await settled();
  });

  test("timeouts, a ttl, ageing and budgets share one timer", async () => {
    const limiter = world().limiter({
      slots: 2,
      ttlMs: 5_000,
      levels: 3,
      ageAfterMs: 700,
      budgets: { requests: { limit: 1, perMs: 1_000 } },
    });
    for (let i = 0; i < 5; i++) world().pass(limiter, `${i}`, { timeoutMs: 100 + i, level: i % 3 });
    await settled();
    expect(world().clock.pending).toBe(1);
    await world().clock.advanceAsync(200);
    expect([limiter.waiting, world().clock.pending]).toEqual([0, 0]);
  });

  test("a real process ends though budgets are spent, a ttl runs and keys are known", async () => {
    const program = `
      const limiter = new Limiter({ slots: 5, ttlMs: 3_600_000, perKey: { slots: 2 },
        budgets: { requests: { limit: 1, perMs: 3_600_000 } } });
      limiter.tryAcquire({ key: "a" });
      console.log("end of main");`;
    expect(await runProgram(program)).toEqual({ code: 0, output: "end of main\n" });
  });

  test("a real process stays until a waiter is served", async () => {
    const program = `
      const limiter = new Limiter({ budgets: { requests: { limit: 1, perMs: 50 } } });
      await limiter.run(() => {});
      limiter.run(() => console.log("served"));`;
    expect(await runProgram(program)).toEqual({ code: 0, output: "served\n" });
  });
});

describe("a setting changed at run time that stops the refill", () => {
  test("after an update budgets flow in as before, with waiters and without", async () => {
    const limiter = world().limiter({ budgets: { requests: { limit: 1, perMs: 100 } } });
    for (let i = 0; i < 4; i++) world().pass(limiter, `${i}`);
    await world().clock.advanceAsync(50);
    limiter.update({ slots: 5 });
    limiter.update({ budgets: { requests: { perMs: 200 } } });
    await world().clock.advanceAsync(1_000);
    expect(world().grants).toEqual(["0 0", "1 150", "2 350", "3 550"]);
  });
});

describe("clear() leaving promises pending", () => {
  test("every waiter is rejected, of run and map too", async () => {
    const limiter = world().limiter({ slots: 1 });
    const held = await limiter.acquire();
    const ends = [limiter.acquire(), limiter.run(() => 1), limiter.map([1, 2], (item) => item)];
    await settled();
    limiter.clear(new Error("cleared"));
    const outcomes = await Promise.allSettled(ends);
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    held.release();
  });
});

describe("a limit lifted by resuming a paused queue", () => {
  test("pausing and resuming at will grants nothing that the budget does not", async () => {
    const limiter = world().limiter({ budgets: { requests: { limit: 5, perMs: 1_000, strict: true } } });
    for (let i = 0; i < 20; i++) world().pass(limiter, `${i}`);
    for (let i = 0; i < 30; i++) {
      limiter.pause();
      await world().clock.advanceAsync(50);
      limiter.resume();
      await world().clock.advanceAsync(50);
    }
    await world().clock.advanceAsync(2_000);
    expect([world().grants.length, mostIn(1_000, timesOf(world().grants))]).toEqual([20, 5]);
  });
});

describe("an expiration that bounds the work and not the wait", () => {
  test("timeoutMs bounds the wait, and not the work", async () => {
    const limiter = world().limiter({ slots: 1 });
    const work = new Deferred<string>();
    const running = limiter.run(() => work.promise, { timeoutMs: 50 });
    const waiting = limiter.run(() => "never", { timeoutMs: 50 });
    const refused = expect(waiting).rejects.toMatchObject({ code: "ACQUIRE_TIMEOUT", waitedMs: 50 });
    await world().clock.advanceAsync(10_000);
    await refused;
    work.resolve("done");
    expect(await running).toBe("done");
  });
});

describe("a request above the whole budget that waits for ever", () => {
  test("is refused at once, also while others wait", async () => {
    const limiter = world().limiter({ slots: 1, budgets: { tokens: { limit: 10, perMs: 1_000 } } });
    const held = await limiter.acquire();
    world().pass(limiter, "waiter");
    await expect(limiter.acquire({ cost: { tokens: 11 } })).rejects.toThrow(RangeError);
    held.release();
    await settled();
  });
});

describe("a leaked in-flight count after an abort", () => {
  test("aborts while waiting, at the grant and before the work leave no slot, cost or listener", async () => {
    const limiter = world().limiter({
      slots: 1,
      budgets: { tokens: { limit: 100, perMs: 1_000 } },
      perKey: { slots: 1, budgets: { tokens: { limit: 100, perMs: 1_000 } } },
    });
    const controllers = Array.from({ length: 30 }, () => new AbortController());
    for (let round = 0; round < 30; round++) {
      const { signal } = controllers[round] as AbortController;
      const held = await limiter.acquire({ cost: { tokens: 0 } });
      const run = limiter.run(() => "ran", { key: round % 3, cost: { tokens: 50 }, signal }).catch(() => "aborted");
      if (round % 3 === 0) controllers[round]?.abort();
      held.release();
      if (round % 3 === 1) controllers[round]?.abort();
      for (let turn = 0; turn < round % 4; turn++) await Promise.resolve();
      if (round % 3 === 2) controllers[round]?.abort();
      const end = await run;
      if (round % 3 < 2) expect(end).toBe("aborted");
      expect([limiter.inUse, limiter.waiting, getEventListeners(signal, "abort").length]).toEqual([0, 0, 0]);
      if (end === "aborted") expect(limiter.stats().budgets.tokens?.available).toBe(100);
      await world().clock.advanceAsync(1_000);
    }
    limiter.sweep();
    expect(limiter.size).toBe(0);
  });
});

describe("a queue that falls off a cliff", () => {
  test("100,000 waiters in 1,000 keys and 3 levels are served in order of their keys, and leave nothing", async () => {
    const limiter = new Limiter({ slots: 1, levels: 3, perKey: { slots: 1 } });
    const held = await limiter.acquire();
    let served = 0;
    for (let i = 0; i < 100_000; i++) {
      void limiter.run(() => served++, { key: i % 1_000, level: i % 3 });
    }
    expect(limiter.waiting).toBe(100_000);
    held.release();
    await limiter.idle();
    await settled();
    expect([served, limiter.size]).toEqual([100_000, 0]);
  });

  test("one signal shared by 20,000 waiters has one listener", async () => {
    const limiter = world().limiter({ slots: 1 });
    const held = await limiter.acquire();
    const controller = new AbortController();
    const ends = Array.from({ length: 20_000 }, () => limiter.acquire({ signal: controller.signal }).catch(() => {}));
    expect(getEventListeners(controller.signal, "abort").length).toBe(1);
    controller.abort();
    await Promise.all(ends);
    expect(limiter.waiting).toBe(0);
    held.release();
  });
});
