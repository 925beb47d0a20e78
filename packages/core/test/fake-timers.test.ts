/** Fake timers of test runners, with a semaphore that uses real time. */
import { mock } from "node:test";
import { Semaphore } from "slotkeeper";
import { Limiter } from "slotkeeper/limiter";
import { settled } from "slotkeeper/testing";
import { afterEach, describe, expect, test, vi } from "vitest";
import { outcome } from "./outcome.ts";

afterEach(() => {
  mock.timers.reset();
  vi.useRealTimers();
});

/** Starts fake timers, and returns how to advance them. */
const runners: [string, () => (ms: number) => void][] = [
  [
    "mock.timers of node:test, which leaves `performance` real",
    () => {
      mock.timers.enable();
      return (ms) => mock.timers.tick(ms);
    },
  ],
  [
    "fake timers of vitest",
    () => {
      vi.useFakeTimers();
      return (ms) => vi.advanceTimersByTime(ms);
    },
  ],
];

describe.each(runners)("%s", (_, start) => {
  test("end a timeout at its time and not earlier, for waiters that arrive at different times", async () => {
    const advance = start();
    for (const gate of [new Semaphore(1), new Limiter({ slots: 1 })]) {
      const held = await gate.acquire();
      const first = outcome(gate.acquire({ timeoutMs: 100 }));
      advance(50);
      const second = outcome(gate.acquire({ timeoutMs: 100 }));
      advance(49);
      await settled();
      expect([first.status, second.status]).toEqual(["pending", "pending"]);
      advance(1);
      await settled();
      expect(first.reason).toMatchObject({ code: "ACQUIRE_TIMEOUT", waitedMs: 100 });
      advance(49);
      await settled();
      expect(second.status).toBe("pending");
      advance(1);
      await settled();
      expect(second.reason).toMatchObject({ code: "ACQUIRE_TIMEOUT", waitedMs: 100 });
      held.release();
    }
  });

  test("expire a slot", async () => {
    const advance = start();
    const sem = new Semaphore(1, { ttlMs: 100 });
    const slot = await sem.acquire();
    advance(99);
    expect(slot.released).toBe(false);
    advance(1);
    expect(slot.released).toBe(true);
  });
});
