// `onFailure`: which work runs without a slot while the service is unreachable. None does while it is only busy.
import { UnavailableError } from "@slotkeeper/client";
import { expect, test } from "vitest";
import { startWorld } from "./fixture.ts";

const host = { hostname: "example.com", bucket: "me" };

test("closed: no work runs without a slot", async () => {
  const world = await startWorld();
  await world.proxy.refuse();
  const keeper = world.client({ maxWaitMs: 500 });
  await expect(keeper.acquire(host)).rejects.toBeInstanceOf(UnavailableError);
  await expect(keeper.acquire(host)).rejects.toBeInstanceOf(UnavailableError);
  expect(keeper.stats().unguarded).toBe(0);
  await world.proxy.accept();
});

test("open: work runs without a slot, is counted, and needs a slot again when the service is back", async () => {
  const world = await startWorld();
  await world.proxy.refuse();
  const keeper = world.client({ onFailure: "open" });
  const slot = await keeper.acquire(host);
  expect(slot).toMatchObject({ guarded: false, token: "", fence: 0, expiresAt: undefined });
  expect([await slot.renew(), await slot.release(), await slot.release()]).toEqual([true, true, false]);
  // The service is known to be unreachable, so other calls do not wait for another failure.
  const startedAt = Date.now();
  await Promise.all(Array.from({ length: 20 }, () => keeper.run(host, () => {})));
  expect(Date.now() - startedAt).toBeLessThan(500);
  expect(keeper.stats()).toEqual({ held: 0, unguarded: 21 });
  await world.proxy.accept();
  await expect.poll(() => keeper.run(host, ({ guarded }) => guarded), { timeout: 5_000, interval: 100 }).toBe(true);
  expect((await keeper.acquire(host)).guarded).toBe(true);
});

test("open: if the service is busy or refuses, no work runs without a slot", async () => {
  const world = await startWorld({ fairQueue: { maxSlotPerHost: 1, maxSlotPerIp: -1 } });
  const keeper = world.client({ onFailure: "open", maxWaitMs: 400 });
  const held = await keeper.acquire(host);
  await expect(keeper.acquire(host)).rejects.toMatchObject({ code: "ACQUIRE_TIMEOUT" });
  await expect(keeper.acquire({ hostname: "x".repeat(300) })).rejects.toMatchObject({ code: "REFUSED", status: 400 });
  expect(keeper.stats().unguarded).toBe(0);
  await held.release();
});

test("open: a session whose call did reach the service is cancelled", async () => {
  const world = await startWorld();
  world.proxy.fault = (call) => (call.body.includes("waitMs") ? "lost-answer" : "none");
  const slot = await world.client({ onFailure: "open" }).acquire(host);
  expect(slot.guarded).toBe(false);
  await world.until({ slots: 0, sessions: 0 });
});

test("a share: at most that part of the last known limit runs at once", async () => {
  const world = await startWorld();
  const keeper = world.client({ onFailure: { share: 0.5 }, maxWaitMs: 1_500 });
  const semaphore = keeper.semaphore("jobs", 5);
  await semaphore.run(() => {});
  await world.proxy.refuse();
  let running = 0;
  let most = 0;
  const results = await Promise.allSettled(
    Array.from({ length: 6 }, () =>
      semaphore.run(
        async () => {
          most = Math.max(most, ++running);
          await new Promise((resolve) => setTimeout(resolve, 100));
          running--;
        },
        { timeoutMs: 3_000 },
      ),
    ),
  );
  expect(most).toBe(2);
  expect(results.map(({ status }) => status)).toEqual(Array.from({ length: 6 }, () => "fulfilled"));
  expect(keeper.stats().unguarded).toBe(6);
  await world.proxy.accept();
});

test("a share of a host's limit uses the limit that the service reports with the grant", async () => {
  const world = await startWorld({ fairQueue: { maxSlotPerHost: 10 } });
  const keeper = world.client({ onFailure: { share: 0.2 }, maxWaitMs: 4_000 });
  await keeper.run(host, () => {});
  await world.proxy.refuse();
  const slots = await Promise.allSettled([1, 2, 3].map(() => keeper.acquire(host)));
  expect(slots.map(({ status }) => status).sort()).toEqual(["fulfilled", "fulfilled", "rejected"]);
  await expect(keeper.acquire({ hostname: "never-seen.com" })).rejects.toBeInstanceOf(UnavailableError);
  await world.proxy.accept();
});

test("a share below one slot counts as closed, and a share expires", async () => {
  const world = await startWorld();
  const [small, short] = [0.1, 1].map((share) => world.client({ onFailure: { share, forMs: 700 }, maxWaitMs: 500 }));
  for (const keeper of [small, short]) await keeper?.semaphore("jobs", 5).run(() => {});
  await world.proxy.refuse();
  await expect(small?.semaphore("jobs", 5).acquire({ timeoutMs: 500 })).rejects.toBeInstanceOf(UnavailableError);
  expect((await short?.semaphore("jobs", 5).acquire({ timeoutMs: 500 }))?.guarded).toBe(false);
  await new Promise((resolve) => setTimeout(resolve, 700));
  await expect(short?.semaphore("jobs", 5).acquire({ timeoutMs: 500 })).rejects.toBeInstanceOf(UnavailableError);
  await world.proxy.accept();
});

test("open: if the service returns but is busy, no work runs without a slot any more", async () => {
  const world = await startWorld();
  const keeper = world.client({ onFailure: "open", maxWaitMs: 1_500 });
  world.proxy.fault = "reset";
  expect((await keeper.acquire(host)).guarded).toBe(false);
  world.proxy.fault = { status: 503, headers: { "retry-after": "1" } };
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  // The first call asks the service again and finds it busy. From then on all calls wait for it.
  await expect(keeper.acquire(host)).rejects.toMatchObject({ code: "OVERLOADED" });
  await expect(keeper.acquire(host)).rejects.toMatchObject({ code: "OVERLOADED" });
  expect(keeper.stats().unguarded).toBe(1);
});
