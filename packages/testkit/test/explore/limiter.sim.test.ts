import { type Action, type Scenario, type SlotSource, slotStorm } from "@slotkeeper/testkit/explore";
import type { Clock } from "slotkeeper";
import { exploreAsync } from "slotkeeper/effects";
import { Limiter } from "slotkeeper/limiter";
import { describe, expect, it } from "vitest";

const RUNS = 1_000;
const actions: readonly Action[] = ["wait", "timeout", "abort", "try"];

/** Like a pool: a limit in total and per key, and a budget that makes waiters wait for the timer. */
const limiterSource =
  (slots: number, perKey: number, limit: number) =>
  (clock: Clock): SlotSource => {
    const limiter = new Limiter({
      slots,
      perKey: { slots: perKey },
      budgets: { requests: { limit, perMs: 10 } },
      clock,
    });
    return {
      limit: slots,
      limitPerKey: perKey,
      acquire: ({ key, signal, timeoutMs }) => limiter.acquire({ key, signal, timeoutMs }),
      tryAcquire: (key) => limiter.tryAcquire({ key }),
      get inUse() {
        return limiter.inUse;
      },
      get waiting() {
        return limiter.waiting;
      },
    };
  };

const users = (count: number, keys: readonly string[]): Scenario["users"] =>
  Array.from({ length: count }, (_, id) => ({
    key: keys[id % keys.length] as string,
    actions: [...actions.slice(id % 4), ...actions.slice(0, id % 4)],
  }));

describe("the limiter under many interleavings", () => {
  it.each([
    ["one slot", { source: limiterSource(1, 1, 1_000), users: users(4, ["k"]) }],
    ["two slots, one per key, few requests per time", { source: limiterSource(2, 1, 3), users: users(6, ["a", "b"]) }],
    ["two slots, requests one by one", { source: limiterSource(2, 2, 1), users: users(5, ["a", "b"]) }],
  ])("keeps its promises: %s", async (_, scenario) => {
    const result = await exploreAsync(slotStorm(scenario), { runs: RUNS, print: () => {} });
    expect(result.failure?.report ?? "").toBe("");
  });
});
