/**
 * Every operation is run once to count its steps (turns of the microtask queue), then aborted at step 0, 1, … N. Wherever
 * the abort falls: the slot is the caller's or it is free, the cost is paid only by work that started, and the
 * key's slot goes with it.
 */
import type { Limiter, LimiterSlot } from "slotkeeper/limiter";
import { settled } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { type Outcome, outcome } from "../outcome.ts";
import { useLimiterWorld } from "./limiter-world.ts";

const world = useLimiterWorld();
const reason = new Error("abort at a step");
const COST = 40;
const STEPS = 12;

function make(): Limiter<"tokens"> {
  const tokens = { limit: 100, perMs: 1e12 };
  return world().limiter({ slots: 1, budgets: { tokens }, perKey: { slots: 1, budgets: { tokens } } });
}

const blocks: Record<string, (limiter: Limiter<"tokens">) => () => void> = {
  "a free slot": () => () => {},
  "a wait for a slot": (limiter) => {
    const held = limiter.tryAcquire({ cost: { tokens: 0 } });
    return () => void held?.release();
  },
  "a wait for a budget": (limiter) => {
    const held = limiter.tryAcquire({ key: "other", cost: { tokens: 80 } });
    held?.release();
    const settledLater = limiter.tryAcquire({ key: "other", cost: { tokens: 20 } });
    settledLater?.settle({ tokens: 20 });
    settledLater?.release();
    return () => limiter.update({ budgets: { tokens: { limit: 200 } } });
  },
  "a paused limiter": (limiter) => {
    limiter.pause();
    return () => limiter.resume();
  },
};

/** What is left of the common budget, less what was spent before. */
const spentOf = (limiter: Limiter<"tokens">): number => {
  const { burst = 0, available = 0 } = limiter.stats().budgets.tokens ?? {};
  return Math.round(burst - available);
};

async function abortAt<T>(
  limiter: Limiter<"tokens">,
  block: (limiter: Limiter<"tokens">) => () => void,
  step: number,
  isLetGo: boolean,
  start: (signal: AbortSignal) => Promise<T>,
): Promise<{ result: Outcome<T>; before: number }> {
  const controller = new AbortController();
  const unblock = block(limiter);
  const before = spentOf(limiter);
  const result = outcome(start(controller.signal));
  if (isLetGo) {
    await settled();
    unblock();
  }
  for (let turn = 0; turn < step; turn++) await Promise.resolve();
  controller.abort(reason);
  await settled();
  unblock();
  await settled();
  return { result, before };
}

describe.each(Object.entries(blocks))("abort at every step of %s", (_, block) => {
  test.each([false, true])("acquire, let go: %s", async (isLetGo) => {
    for (let step = 0; step <= STEPS; step++) {
      const limiter = make();
      const { result, before } = await abortAt(limiter, block, step, isLetGo, (signal) =>
        limiter.acquire({ key: "mine", cost: { tokens: COST }, signal }),
      );
      expect(result.status, `step ${step}`).not.toBe("pending");
      const isGranted = result.status === "fulfilled";
      expect([limiter.inUse, limiter.waiting, spentOf(limiter) - before], `step ${step}`).toEqual(
        isGranted ? [1, 0, COST] : [0, 0, 0],
      );
      if (isGranted) (result.value as LimiterSlot).release();
      else expect(result.reason).toBe(reason);
      expect(limiter.tryAcquire({ key: "mine", cost: { tokens: 0 } })?.release()).toBe(true);
    }
  });

  test.each([false, true])(
    "run, let go: %s: work runs to its end and is paid, or never starts and costs nothing",
    async (isLetGo) => {
      for (let step = 0; step <= STEPS; step++) {
        const limiter = make();
        let [started, ended] = [0, 0];
        const { result, before } = await abortAt(limiter, block, step, isLetGo, (signal) =>
          limiter.run(
            async () => {
              started++;
              expect(signal.aborted).toBe(false);
              await settled(2);
              ended++;
            },
            { key: "mine", cost: { tokens: COST }, signal },
          ),
        );
        expect([started, ended], `step ${step}`).toEqual(result.status === "fulfilled" ? [1, 1] : [0, 0]);
        expect([limiter.inUse, limiter.waiting, spentOf(limiter) - before]).toEqual([0, 0, started * COST]);
      }
    },
  );
});

describe("close, clear and expiry at every step", () => {
  test.each(["close", "clear"] as const)("%s: no slot leaks and every waiter is rejected", async (end) => {
    for (const block of Object.values(blocks)) {
      for (let step = 0; step <= STEPS; step++) {
        const limiter = make();
        const unblock = block(limiter);
        const result = outcome(limiter.acquire({ key: "mine", cost: { tokens: COST } }));
        for (let turn = 0; turn < step; turn++) await Promise.resolve();
        limiter[end](reason);
        await settled();
        unblock();
        await settled();
        expect(result.status).not.toBe("pending");
        if (result.status === "fulfilled") result.value.release();
        expect([limiter.inUse, limiter.waiting], `step ${step}`).toEqual([0, 0]);
      }
    }
  });

  test("a slot expires wherever its owner is", async () => {
    for (let step = 0; step <= STEPS; step++) {
      const limiter = world().limiter({ slots: 1, ttlMs: 10, perKey: { slots: 1 } });
      const held = await limiter.acquire({ key: "a" });
      const next = outcome(limiter.acquire({ key: "a" }));
      held.release();
      for (let turn = 0; turn < step; turn++) await Promise.resolve();
      await world().clock.advanceAsync(10);
      expect([next.value.released, limiter.inUse, limiter.size]).toEqual([true, 0, 0]);
    }
  });
});
