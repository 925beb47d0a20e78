// Abort at every stage: the caller gets the reason unchanged, and the service keeps no session.
import { expect, test } from "vitest";
import { startWorld, type World } from "./fixture.ts";

const host = { hostname: "example.com", bucket: "me" };
const oneSlot = { fairQueue: { maxSlotPerHost: 1, maxSlotPerIp: -1 } };
const reason = { any: "reason" };

/** The stage of the wait at which it is aborted. Each function resolves at its stage. */
const stages: Record<string, (world: World) => Promise<void>> = {
  "while the first call is held": (world) => world.until({ slots: 1, sessions: 1 }),
  "before the first call is answered, its answer lost": async (world) => {
    world.proxy.fault = (call) => (call.body.includes("waitMs") ? "black-hole" : "none");
    await expect.poll(() => world.proxy.calls("acquire").length).toBe(2);
  },
  "during the pause after a failed call": async (world) => {
    world.proxy.fault = (call) => (call.body.includes("waitMs") ? { status: 500 } : "none");
    await expect.poll(() => world.proxy.calls("acquire").length).toBe(3);
  },
  "during a later poll": async (world) => {
    await expect.poll(() => world.proxy.calls("acquire").some(({ body }) => body.includes("queryToken"))).toBe(true);
    await world.until({ slots: 1, sessions: 1 });
  },
};

test.each(Object.keys(stages))("an abort %s rejects with the reason and leaves no session", async (stage) => {
  const world = await startWorld(oneSlot);
  const keeper = world.client();
  const held = await keeper.acquire(host);
  const controller = new AbortController();
  const ended = keeper
    .acquire({ ...host, signal: controller.signal, onPending: () => {} })
    .catch((error: unknown) => error);
  await stages[stage]?.(world);
  controller.abort(reason);
  expect(await ended).toBe(reason);
  world.proxy.fault = "none";
  await world.until({ slots: 1, sessions: 0 });
  await held.release();
  expect(await world.left()).toEqual({ slots: 0, sessions: 0 });
});

test("an already aborted signal rejects without a call", async () => {
  const world = await startWorld();
  await expect(world.client().acquire({ ...host, signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  expect(world.proxy.seen).toEqual([]);
});

test("an abort while the granted answer is on its way releases the slot", async () => {
  const world = await startWorld(oneSlot);
  const controller = new AbortController();
  world.proxy.fault = (call) => (call.body.includes("waitMs") ? { slowMs: 300 } : "none");
  const ended = world
    .client()
    .acquire({ ...host, signal: controller.signal })
    .catch((error: unknown) => error);
  await world.until({ slots: 1, sessions: 0 });
  controller.abort(reason);
  expect(await ended).toBe(reason);
  await world.until({ slots: 0, sessions: 0 });
});

test("an abort after the grant does not release the slot: the holder decides", async () => {
  const world = await startWorld();
  const controller = new AbortController();
  const slot = await world.client().acquire({ ...host, signal: controller.signal });
  controller.abort(reason);
  expect([slot.released, slot.signal.aborted]).toEqual([false, false]);
  expect(await slot.release()).toBe(true);
});

test("every listener on the caller's signal is gone when the wait has ended", async () => {
  const world = await startWorld(oneSlot);
  const keeper = world.client();
  const { signal } = new AbortController();
  let listeners = 0;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = ((...args: Parameters<typeof add>) => (listeners++, add(...args))) as typeof add;
  signal.removeEventListener = ((...args: Parameters<typeof remove>) => (
    listeners--, remove(...args)
  )) as typeof remove;
  const slot = await keeper.acquire({ ...host, signal });
  await expect(keeper.acquire({ ...host, signal, maxWaitMs: 300 })).rejects.toMatchObject({ code: "ACQUIRE_TIMEOUT" });
  await slot.release();
  expect(listeners).toBe(0);
});
