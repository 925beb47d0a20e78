import { realClock, Semaphore, SlotPool } from "slotkeeper";
import { FakeClock, LeakGuard, settled } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { outcome } from "./outcome.ts";

describe("FakeClock", () => {
  test("time does not move until the test advances it", () => {
    const clock = new FakeClock(500);
    expect([clock.now(), clock.now()]).toEqual([500, 500]);
    clock.advance(20);
    expect(clock.now()).toBe(520);
    expect(new FakeClock().now()).toBe(0);
  });

  test("timers fire in the order of their due time, then in the order they were set, with now() exact", () => {
    const clock = new FakeClock();
    const fired: string[] = [];
    const set = (what: string, ms: number) => clock.setTimer(() => fired.push(`${what} at ${clock.now()}`), ms);
    set("c", 30);
    set("a", 10);
    set("b1", 20);
    set("b2", 20);
    clock.advance(29);
    expect(fired).toEqual(["a at 10", "b1 at 20", "b2 at 20"]);
    expect([clock.now(), clock.pending]).toEqual([29, 1]);
    clock.advance(1);
    expect([fired.at(-1), clock.pending]).toEqual(["c at 30", 0]);
  });

  test("a timer that is set while others fire also fires in the same advance if it is due", () => {
    const clock = new FakeClock();
    const fired: number[] = [];
    const again = () => {
      fired.push(clock.now());
      if (fired.length < 5) clock.setTimer(again, 10);
    };
    clock.setTimer(again, 10);
    clock.advance(35);
    expect(fired).toEqual([10, 20, 30]);
    clock.advance(15);
    expect(fired).toEqual([10, 20, 30, 40, 50]);
  });

  test("a cleared timer does not fire, even if a timer with the same due time clears it", () => {
    const clock = new FakeClock();
    const fired: string[] = [];
    const first = clock.setTimer(() => {
      fired.push("first");
      clock.clearTimer(second);
    }, 10);
    const second = clock.setTimer(() => fired.push("second"), 10);
    const third = clock.setTimer(() => fired.push("third"), 10);
    clock.clearTimer(third);
    clock.clearTimer(third);
    clock.clearTimer(undefined);
    clock.advance(10);
    clock.clearTimer(first);
    expect([fired, clock.pending]).toEqual([["first"], 0]);
  });

  test("a timer fires once", () => {
    const clock = new FakeClock();
    let fired = 0;
    clock.setTimer(() => fired++, 10);
    clock.advance(100);
    clock.advance(100);
    expect(fired).toBe(1);
  });

  test("a delay below zero is due now", () => {
    const clock = new FakeClock(50);
    let firedAt = -1;
    clock.setTimer(() => (firedAt = clock.now()), -10);
    clock.advance(0);
    expect(firedAt).toBe(50);
  });

  test("keepingAlive counts the timers that are not unref'd", () => {
    const clock = new FakeClock();
    const timer = clock.setTimer(() => {}, 10);
    expect([clock.pending, clock.keepingAlive]).toEqual([1, 1]);
    timer.unref();
    expect([clock.pending, clock.keepingAlive]).toEqual([1, 0]);
    timer.ref();
    expect(clock.keepingAlive).toBe(1);
    clock.clearTimer(timer);
  });

  test("time does not go back", () => {
    const clock = new FakeClock();
    expect(() => clock.advance(-1)).toThrow(/`ms`.*got -1/);
    expect(() => clock.advance(Number.NaN)).toThrow(RangeError);
    expect(clock.now()).toBe(0);
  });

  test("advanceAsync lets promise reactions run before, after each timer, and at the end", async () => {
    const clock = new FakeClock();
    const seen: string[] = [];
    void Promise.resolve().then(() => clock.setTimer(() => seen.push(`early ${clock.now()}`), 5));
    clock.setTimer(
      () => void Promise.resolve().then(() => clock.setTimer(() => seen.push(`late ${clock.now()}`), 5)),
      10,
    );
    await clock.advanceAsync(20);
    expect([seen, clock.now()]).toEqual([["early 5", "late 15"], 20]);
    await expect(clock.advanceAsync(-1)).rejects.toThrow(RangeError);
  });

  test("settled waits for chains of promises", async () => {
    let steps = 0;
    const chain = async () => {
      for (; steps < 20; steps++) await Promise.resolve();
    };
    void chain();
    await settled();
    expect(steps).toBe(20);
  });
});

describe("realClock", () => {
  test("reads the time since the epoch, forward only, and sets and clears timers", async () => {
    const before = realClock.now();
    expect(Math.abs(before - Date.now())).toBeLessThan(60_000);
    const fired: string[] = [];
    const cleared = realClock.setTimer(() => fired.push("cleared"), 1);
    realClock.clearTimer(cleared);
    await new Promise<void>((resolve) => void realClock.setTimer(resolve, 5));
    expect(fired).toEqual([]);
    expect(realClock.now()).toBeGreaterThan(before);
  });
});

describe("LeakGuard", () => {
  test("does not throw when nothing is left", async () => {
    const clock = new FakeClock();
    const guard = new LeakGuard(clock);
    const sem = guard.track(new Semaphore(1, { clock, ttlMs: 10 }));
    (await sem.acquire()).release();
    expect(() => guard.check()).not.toThrow();
  });

  test("track returns its argument", () => {
    const sem = new Semaphore(1);
    expect(new LeakGuard().track(sem)).toBe(sem);
  });

  test("lists in one error every semaphore and pool with slots held or waiters, timers, and signals with listeners", async () => {
    const clock = new FakeClock();
    const guard = new LeakGuard(clock);
    const sem = guard.track(new Semaphore(2, { clock, name: `leaky-${crypto.randomUUID()}` }));
    const pool = guard.track(new SlotPool({ max: 1, clock }));
    const slots = [await sem.acquire({ width: 2 }), await pool.acquire()];
    const controller = new AbortController();
    const waiters = [sem.acquire({ signal: controller.signal }), sem.acquire({ timeoutMs: 10 })].map(outcome);
    let message = "";
    try {
      guard.check();
    } catch (error) {
      ({ message } = error as Error);
    }
    expect(message).toBe(
      `Expected nothing to be left, got Semaphore "${sem.name}" with 2 in use and 2 waiting; ` +
        "SlotPool with 1 in use and 0 waiting; 1 timers set; 1 signals listened to",
    );
    controller.abort();
    clock.advance(10);
    for (const slot of slots) slot.release();
    await settled();
    expect(waiters.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  });

  test.each(["slot", "waiter", "timer", "signal"])("a single %s is reported", async (what) => {
    const clock = new FakeClock();
    const guard = new LeakGuard(clock);
    const sem = new Semaphore(1);
    const held = await sem.acquire();
    const controller = new AbortController();
    const waiter = outcome(sem.acquire(what === "signal" ? { signal: controller.signal } : undefined));
    const timer = what === "timer" ? clock.setTimer(() => {}, 10) : undefined;
    if (what === "slot" || what === "waiter") guard.track(sem);
    expect(() => guard.check()).toThrow(
      { slot: "1 in use", waiter: "1 waiting", timer: "1 timers", signal: "1 signals" }[what],
    );
    clock.clearTimer(timer);
    held.release();
    await settled();
    waiter.value.release();
    expect(() => guard.check()).not.toThrow();
  });

  test("reports nothing twice, and no signals that already had listeners", async () => {
    const guard = new LeakGuard();
    const sem = guard.track(new Semaphore(1));
    const held = await sem.acquire();
    const waiter = outcome(sem.acquire({ signal: new AbortController().signal }));
    expect(() => guard.check()).toThrow("1 signals");
    expect(() => guard.check()).not.toThrow();
    expect(() => new LeakGuard().check()).not.toThrow();
    held.release();
    await settled();
    waiter.value.release();
  });
});
