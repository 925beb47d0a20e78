import { getEventListeners } from "node:events";
import { settled } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { expiringGates } from "./gates.ts";
import { outcome } from "./outcome.ts";
import { useWorld } from "./world.ts";

const world = useWorld();
const listeners = (signal: AbortSignal) => getEventListeners(signal, "abort").length;

describe("listeners on the caller's signal", () => {
  test("there is one listener per signal for any number of waiters and semaphores", async () => {
    const { signal } = new AbortController();
    const sems = [world().semaphore(1), world().semaphore(1)];
    const held = await Promise.all(sems.map((sem) => sem.acquire()));
    const waiters = sems.flatMap((sem) => Array.from({ length: 50 }, () => outcome(sem.acquire({ signal }))));
    expect(listeners(signal)).toBe(1);
    for (const slot of held) slot.release();
    for (const waiter of waiters) {
      await settled(3);
      waiter.value.release();
    }
    expect(listeners(signal)).toBe(0);
  });

  test("a caller that gets a slot at once adds no listener", async () => {
    const { signal } = new AbortController();
    const slot = await world().semaphore(1).acquire({ signal });
    expect(listeners(signal)).toBe(0);
    slot.release();
  });

  test("a signal has no listener after it aborted", async () => {
    const controller = new AbortController();
    const sem = world().semaphore(1);
    const held = await sem.acquire();
    const waiters = Array.from({ length: 3 }, () => outcome(sem.acquire({ signal: controller.signal })));
    controller.abort();
    expect(listeners(controller.signal)).toBe(0);
    await settled();
    expect(waiters.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    held.release();
  });

  test("a close, a timeout, and a shrink that rejects the waiter remove the listener", async () => {
    for (const how of ["close", "timeout", "shrink"]) {
      const { signal } = new AbortController();
      const sem = world().semaphore(2);
      const held = await sem.acquire({ width: 2 });
      const waiter = outcome(sem.acquire({ signal, width: 2, timeoutMs: 10 }));
      expect(listeners(signal)).toBe(1);
      if (how === "close") sem.close();
      if (how === "timeout") world().clock.advance(10);
      if (how === "shrink") sem.resize(1);
      expect(listeners(signal), how).toBe(0);
      await settled();
      expect(waiter.status).toBe("rejected");
      held.release();
    }
  });

  test("both stages of a pool share one listener and remove it", async () => {
    const { signal } = new AbortController();
    const pool = world().pool({ max: 1, maxPerKey: 1 });
    const held = await pool.acquire("a");
    const waiters = ["a", "b"].map((key) => outcome(pool.acquire(key, { signal })));
    await settled();
    expect(listeners(signal)).toBe(1);
    held.release();
    await settled();
    waiters[1]?.value.release();
    await settled();
    waiters[0]?.value.release();
    expect(listeners(signal)).toBe(0);
    pool.close();
  });

  test("run removes its listener before the work starts", async () => {
    const { signal } = new AbortController();
    const sem = world().semaphore(1);
    const held = await sem.acquire();
    const run = sem.run(() => listeners(signal), { signal });
    expect(listeners(signal)).toBe(1);
    held.release();
    expect(await run).toBe(0);
  });
});

/** A signal of the caller's own that never aborts, with a method that throws. */
function brokenSignal(method: "addEventListener" | "removeEventListener"): AbortSignal {
  const fail = () => {
    throw new Error(method);
  };
  return { aborted: false, addEventListener() {}, removeEventListener() {}, [method]: fail } as unknown as AbortSignal;
}

describe.each(expiringGates)("a signal whose methods throw, at a %s", (_name, create) => {
  test("a waiter that cannot listen is rejected with the error and leaves nothing", async () => {
    const gate = create(world());
    const held = await gate.acquire();
    const signal = brokenSignal("addEventListener");
    const waiters = [1, 2].map(() => outcome(gate.acquire({ signal, timeoutMs: 10 })));
    await settled();
    for (const waiter of waiters) expect(waiter.reason).toEqual(new Error("addEventListener"));
    held.release();
    expect(gate.inUse).toBe(0);
    (await gate.acquire()).release();
    gate.close();
  });

  test("a waiter whose listener cannot be removed gets its slot", async () => {
    const gate = create(world());
    const held = await gate.acquire();
    const waiter = outcome(gate.acquire({ signal: brokenSignal("removeEventListener") }));
    expect(held.release()).toBe(true);
    await settled();
    waiter.value.release();
    expect(gate.inUse).toBe(0);
    gate.close();
  });
});

test("a waiter that cannot listen at the second stage of a pool gives back the slot of its key", async () => {
  const pool = world().pool({ max: 1, maxPerKey: 1 });
  const held = await pool.acquire("a");
  const waiter = outcome(pool.acquire("b", { signal: brokenSignal("addEventListener") }));
  await settled();
  expect([waiter.status, pool.waiting, pool.stats().inUse]).toEqual(["rejected", 0, 1]);
  held.release();
  (await pool.acquire("b")).release();
  pool.close();
});
