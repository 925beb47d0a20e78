import { AsyncLocalStorage } from "node:async_hooks";
import { settled } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { useWorld } from "./world.ts";

const world = useWorld();
const storage = new AsyncLocalStorage<string>();

describe("async context", () => {
  test("code after await acquire has the context of the caller, not of the releasing call", async () => {
    const sem = world().semaphore(1);
    const held = await storage.run("holder", () => sem.acquire());
    const seen = storage.run("asker", async () => {
      const slot = await sem.acquire({ timeoutMs: 1_000 });
      slot.release();
      return storage.getStore();
    });
    const seenPlain = storage.run("plain asker", async () => {
      const slot = await sem.acquire();
      slot.release();
      return storage.getStore();
    });
    storage.run("releaser", () => held.release());
    expect([await seen, await seenPlain]).toEqual(["asker", "plain asker"]);
  });

  test("work started by run has the context of the caller of run", async () => {
    const sem = world().semaphore(1);
    const held = await sem.acquire();
    const seen = ["a", "b", "c"].map((who) =>
      storage.run(who, () =>
        sem.run(async () => {
          const before = storage.getStore();
          await settled();
          return [before, storage.getStore()];
        }),
      ),
    );
    storage.run("releaser", () => held.release());
    expect(await Promise.all(seen)).toEqual([
      ["a", "a"],
      ["b", "b"],
      ["c", "c"],
    ]);
  });

  test("after an expiry, the next holder also has its own context", async () => {
    const sem = world().semaphore(1, { ttlMs: 10, abortOnExpiry: true });
    await storage.run("holder", () => sem.acquire());
    const seen = storage.run("asker", () => sem.run(() => storage.getStore()));
    storage.run("timer", () => world().clock.advance(10));
    expect(await seen).toBe("asker");
  });

  test("a rejection arrives in the context of the caller", async () => {
    const sem = world().semaphore(1);
    const held = await sem.acquire();
    const controller = new AbortController();
    const seen = storage.run("asker", () =>
      sem.acquire({ signal: controller.signal }).then(
        () => "granted",
        () => storage.getStore(),
      ),
    );
    storage.run("aborter", () => controller.abort());
    expect(await seen).toBe("asker");
    held.release();
  });

  test("map, wrap, keyed semaphores and pools keep the context as well", async () => {
    const sem = world().semaphore(1);
    const keyed = world().keyed(1);
    const pool = world().pool({ max: 1, maxPerKey: 1 });
    const held = [await sem.acquire(), await keyed.acquire("k"), await pool.acquire("k")];
    const see = () => storage.getStore();
    const seen = storage.run("asker", () =>
      Promise.all([
        sem.map([1], see),
        sem.wrap(see)(),
        keyed.run("k", see),
        pool.run("k", see),
        pool.run("other", see),
      ]),
    );
    storage.run("releaser", () => {
      for (const slot of held) slot.release();
    });
    expect(await seen).toEqual([["asker"], "asker", "asker", "asker", "asker"]);
    keyed.close();
    pool.close();
  });
});
