import { settled } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { outcome } from "./outcome.ts";
import { useWorld } from "./world.ts";

const world = useWorld();
const messageOf = (end: { reason: unknown } | undefined) => (end?.reason as Error | undefined)?.message;

describe("messages are sentences", () => {
  test("a timeout names the semaphore, its use, and the rounded time", async () => {
    const sem = world().semaphore(2, { name: "db" });
    const slots = [await sem.acquire(), await sem.acquire()];
    const first = outcome(sem.acquire({ timeoutMs: 10.4 }));
    await world().clock.advanceAsync(11);
    expect(messageOf(first)).toBe('Waited 11 ms for a slot of semaphore "db" (2 of 2 in use, none waiting)');
    const second = outcome(sem.acquire({ timeoutMs: 10 }));
    const patient = [outcome(sem.acquire()), outcome(sem.acquire()), outcome(sem.acquire())];
    await world().clock.advanceAsync(10);
    expect(messageOf(second)).toBe('Waited 10 ms for a slot of semaphore "db" (2 of 2 in use, 3 waiting)');
    sem.clear();
    await settled();
    expect(patient.every(({ status }) => status === "rejected")).toBe(true);
    for (const slot of slots) slot.release();
  });

  test("it names the key if the limit of the key was reached, and no key if the common limit was reached", async () => {
    const pool = world().pool({ max: 2, maxPerKey: 1, name: "uploads", maxWaiters: 1 });
    const held = [await pool.acquire("ann"), await pool.acquire("bob")];
    const key = outcome(pool.acquire("ann", { timeoutMs: 5 }));
    await world().clock.advanceAsync(5);
    expect(messageOf(key)).toBe(
      'Waited 5 ms for a slot of key "ann" of semaphore "uploads" (1 of 1 in use, none waiting)',
    );
    const all = outcome(pool.acquire("eve", { timeoutMs: 5 }));
    await world().clock.advanceAsync(5);
    expect(messageOf(all)).toBe('Waited 5 ms for a slot of semaphore "uploads" (2 of 2 in use, none waiting)');
    for (const slot of held) slot.release();
    pool.close();
  });

  test("a refused waiter gets the numbers of the limit that it hit", async () => {
    const pool = world().pool({ max: 2, maxPerKey: 1, name: "uploads", maxWaiters: 1 });
    const keyed = world().keyed(1, { name: "accounts", maxWaiters: 1 });
    const held = [await pool.acquire("ann"), await pool.acquire("bob"), await keyed.acquire("ann")];
    const waiters = [outcome(pool.acquire("eve")), outcome(keyed.acquire("ann"))];
    const refused = [outcome(pool.acquire("ann")), outcome(keyed.acquire("ann"))];
    await settled();
    // The bound of a pool is for all keys together: ann has 1 of 1 slots and no waiter, but that is not what was hit.
    expect(messageOf(refused[0])).toBe(
      'No more waiters are allowed for a slot of semaphore "uploads" (2 of 2 in use, 1 of 1 waiting)',
    );
    expect(refused[0]?.reason).toMatchObject({ key: undefined, capacity: 2, inUse: 2, waiting: 1, maxWaiters: 1 });
    expect(messageOf(refused[1])).toBe(
      'No more waiters are allowed for a slot of key "ann" of semaphore "accounts" (1 of 1 in use, 1 of 1 waiting)',
    );
    for (const slot of held) slot.release();
    await settled();
    for (const waiter of waiters) waiter.value.release();
    pool.close();
    keyed.close();
  });

  test("messages of close, expiry and a capacity mismatch are sentences, too", async () => {
    const sem = world().semaphore(1, { name: "db", ttlMs: 50, abortOnExpiry: true });
    const { signal } = await sem.acquire();
    expect(() => world().semaphore(2, { name: "db" })).toThrow('Semaphore "db" is in use with a capacity of 1, got 2');
    world().clock.advance(50);
    expect(messageOf(signal)).toBe('A slot of semaphore "db" expired after 50 ms and was taken back');
    sem.close();
    await expect(sem.acquire()).rejects.toThrow('Semaphore "db" is closed');
  });
});

async function whoAsks(sem: ReturnType<ReturnType<typeof world>["semaphore"]>): Promise<unknown> {
  return sem.acquire({ timeoutMs: 10 }).catch((error: unknown) => error);
}

describe("traceTimeouts", () => {
  test.each([true, false])("%s: the stack of a timeout shows the caller, or is empty", async (traceTimeouts) => {
    const sem = world().semaphore(1, { traceTimeouts });
    const held = await sem.acquire();
    const asked = whoAsks(sem);
    await world().clock.advanceAsync(10);
    const { stack, name, message } = (await asked) as Error;
    expect(stack?.startsWith(`${name}: ${message}`)).toBe(true);
    expect(stack?.includes("whoAsks")).toBe(traceTimeouts);
    held.release();
  });
});
