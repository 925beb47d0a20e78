// One suite for the semaphore of one process and that of a fleet: they are interchangeable, except for the skipped
// parts.
import { SlotClient } from "@slotkeeper/client";
import type { Service } from "@slotkeeper/server";
import { describeSemaphore } from "@slotkeeper/testkit/semaphore-contract";
import { Semaphore, SemaphoreRegistry } from "slotkeeper";
import { expect, test } from "vitest";
import { startService, startWorld, stateOf } from "./fixture.ts";

describeSemaphore("Semaphore", {
  open: async () => {
    const registry = new SemaphoreRegistry();
    const make = (slots: number, name: string) => new Semaphore(slots, { name, registry });
    return {
      make,
      queued: async (name, waiters) => {
        const [stats] = registry.stats({ names: [name] });
        expect(stats?.waiting).toBe(waiters);
      },
      close: async () => {},
    };
  },
});

describeSemaphore("keeper.semaphore", {
  open: async () => {
    const service: Service = await startService({});
    const keeper = new SlotClient({ url: service.url });
    return {
      make: (slots, name) => keeper.semaphore(name, slots),
      queued: async (name, waiters) => {
        const waiting = async () => {
          const { hosts } = await stateOf(service.url);
          return hosts.find(({ hostname }) => hostname === `sem:${name}`)?.pending ?? 0;
        };
        await expect.poll(waiting, { timeout: 5_000, interval: 5 }).toBe(waiters);
      },
      close: () => service.stop({ graceMs: 0, deadlineMs: 500 }),
    };
  },
  skip: {
    resize: "the first live user of a name fixes its capacity for the fleet",
    close: "no process may close a semaphore for the others",
    counters: "only the service knows them, and it reports them to operators",
  },
});

test("a different number of slots for a name in use is refused, and the message says so", async () => {
  const world = await startWorld();
  const keeper = world.client();
  const slot = await keeper.semaphore("jobs", 2).acquire();
  const error = await keeper
    .semaphore("jobs", 3)
    .acquire()
    .catch((reason: unknown) => reason);
  expect(error).toMatchObject({ code: "REFUSED", status: 409, problem: "CAPACITY_MISMATCH", retryable: false });
  expect((error as Error).message).toMatch(/^The service at http:\S+ refused the call with status 409: .+\.$/);
  await slot.release();
});

test("a semaphore waits longer than the client waits for a host", async () => {
  const world = await startWorld({ fairQueue: { pollWindowMs: 50 } });
  const semaphore = world.client({ maxWaitMs: 300, maxAttempts: 3 }).semaphore("jobs", 1);
  const held = await semaphore.acquire();
  const waiting = semaphore.acquire();
  await new Promise((resolve) => setTimeout(resolve, 700));
  await held.release();
  await (await waiting).release();
});

test("a semaphore does not wait for a service that stays unreachable", async () => {
  const world = await startWorld();
  await world.proxy.refuse();
  const acquired = world.client({ maxAttempts: 3 }).semaphore("jobs", 1).acquire();
  await expect(acquired).rejects.toMatchObject({ code: "UNAVAILABLE" });
  await world.proxy.accept();
});
