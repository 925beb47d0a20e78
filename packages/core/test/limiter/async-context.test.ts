import { AsyncLocalStorage } from "node:async_hooks";
import { settled } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { useLimiterWorld } from "./limiter-world.ts";

const world = useLimiterWorld();
const storage = new AsyncLocalStorage<string>();

describe("async context", () => {
  test("work and code after await acquire see the context of the caller, not of who released or of the timer", async () => {
    const limiter = world().limiter({ slots: 1, budgets: { requests: { limit: 2, perMs: 100 } } });
    const held = await limiter.acquire();
    const seen = [
      storage.run("runner", () => limiter.run(() => storage.getStore())),
      storage.run("asker", async () => {
        (await limiter.acquire()).release();
        return storage.getStore();
      }),
    ];
    storage.run("releaser", () => held.release());
    await settled();
    await world().clock.advanceAsync(100);
    expect(await Promise.all(seen)).toEqual(["runner", "asker"]);
  });
});
