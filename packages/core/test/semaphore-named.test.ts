import { CapacityMismatchError, ClosedError, defaultRegistry, Semaphore, SemaphoreRegistry } from "slotkeeper";
import { FakeClock, settled } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { outcome } from "./outcome.ts";
import { useWorld } from "./world.ts";

const world = useWorld();
const named = (slots: number) => world().semaphore(slots, { name: "db" });

describe("named semaphores", () => {
  test("instances with the same name and registry share their slots", async () => {
    const [a, b] = [named(2), named(2)];
    const slots = [await a.acquire(), await b.acquire()];
    expect([a.inUse, b.inUse, a.tryAcquire(), b.tryAcquire()]).toEqual([2, 2, undefined, undefined]);
    const waiter = outcome(a.acquire());
    expect(b.waiting).toBe(1);
    slots[1]?.release();
    await settled();
    waiter.value.release();
    slots[0]?.release();
    expect([a.inUse, b.stats().released]).toEqual([0, 3]);
  });

  test("waiters of all instances share one queue", async () => {
    const [a, b] = [named(1), named(1)];
    const held = await a.acquire();
    const order: string[] = [];
    const all = ["a1", "b1", "a2"].map((who) =>
      (who.startsWith("a") ? a : b).acquire().then((slot) => {
        order.push(who);
        slot.release();
      }),
    );
    held.release();
    await Promise.all(all);
    expect(order).toEqual(["a1", "b1", "a2"]);
  });

  test("a slot can be released by its id through any instance of the name", async () => {
    const [a, b] = [named(1), named(1)];
    const { id } = await a.acquire();
    expect([b.release(id), b.release(id), a.inUse]).toEqual([true, false, 0]);
  });

  test("the same name in another registry has its own slots", async () => {
    const other = world().semaphore(1, { name: "db", registry: new SemaphoreRegistry({ clock: world().clock }) });
    const slot = await named(1).acquire();
    expect(other.inUse).toBe(0);
    slot.release();
  });

  test("without a registry the name is looked up in defaultRegistry", () => {
    const name = `default-${crypto.randomUUID()}`;
    const sem = new Semaphore(3, { name });
    const slot = new Semaphore(3, { name }).tryAcquire();
    expect(sem.inUse).toBe(1);
    expect(defaultRegistry.stats({ names: [name] })).toMatchObject([{ name, capacity: 3, inUse: 1 }]);
    slot?.release();
  });

  test("two semaphores without a name share nothing", async () => {
    const [a, b] = [world().semaphore(1), world().semaphore(1)];
    const slot = await a.acquire();
    expect([a.inUse, b.inUse, a.name]).toEqual([1, 0, undefined]);
    slot.release();
  });

  test("each instance has its own options: one may have a ttl and the other none", async () => {
    const leased = world().semaphore(2, { name: "db", ttlMs: 10 });
    const plain = named(2);
    const slots = [await leased.acquire(), await plain.acquire()];
    world().clock.advance(10);
    expect(slots.map((slot) => slot.released)).toEqual([true, false]);
    slots[1]?.release();
  });
});

describe("capacity of a name", () => {
  test("a different capacity while a slot is held is a CapacityMismatchError with both values", async () => {
    const sem = named(2);
    const slot = await sem.acquire();
    expect(() => named(3)).toThrow(CapacityMismatchError);
    expect(() => named(3)).toThrow(
      expect.objectContaining({ code: "CAPACITY_MISMATCH", semaphore: "db", capacity: 2, requested: 3 }),
    );
    expect([sem.capacity, sem.inUse]).toEqual([2, 1]);
    slot.release();
  });

  test("the same capacity is accepted while slots are held and waited for", async () => {
    const sem = named(1);
    const slot = await sem.acquire();
    const waiter = outcome(sem.acquire());
    expect(named(1).waiting).toBe(1);
    slot.release();
    await settled();
    waiter.value.release();
  });

  test("a different capacity is accepted while the name is idle, and applies to all instances", async () => {
    const sem = world().semaphore(2, { name: "db", ttlMs: 10 });
    await sem.acquire();
    world().clock.advance(10);
    expect(named(3).capacity).toBe(3);
    expect(sem.capacity).toBe(3);
  });

  test("only the constructor throws the mismatch: an old instance uses the new capacity of the name", async () => {
    const old = named(1);
    const young = named(2);
    const slots = [await old.acquire(), await young.acquire()];
    expect([old.capacity, old.tryAcquire()]).toEqual([2, undefined]);
    await old
      .run(() => 0, { timeoutMs: 0 })
      .catch((error: unknown) => expect(error).toMatchObject({ code: "ACQUIRE_TIMEOUT" }));
    old.resize(3);
    expect(young.capacity).toBe(3);
    for (const slot of slots) slot.release();
  });

  test("after a resize, the new capacity is compared", async () => {
    const sem = named(2);
    const slot = await sem.acquire();
    sem.resize(4);
    expect(() => named(2)).toThrow(CapacityMismatchError);
    expect(named(4).inUse).toBe(1);
    slot.release();
  });

  test("a constructor that throws leaves nothing behind", async () => {
    const sem = named(2);
    const slot = await sem.acquire();
    expect(() => named(3)).toThrow(CapacityMismatchError);
    expect(() => world().semaphore(2, { name: "other", ttlMs: -1 })).toThrow(RangeError);
    expect(() => world().semaphore(0, { name: "other" })).toThrow(RangeError);
    expect(world().registry.size).toBe(1);
    slot.release();
  });
});

describe("resize and close act on the name", () => {
  test("resize through one instance serves the waiters of another", async () => {
    const [a, b] = [named(1), named(1)];
    const held = await a.acquire();
    const waiter = outcome(a.acquire());
    b.resize(2);
    await settled();
    expect([waiter.status, a.capacity]).toEqual(["fulfilled", 2]);
    waiter.value.release();
    held.release();
  });

  test("close through one instance closes all", async () => {
    const [a, b] = [named(1), named(1)];
    const held = await a.acquire();
    const waiter = outcome(a.acquire());
    b.close("maintenance");
    await settled();
    expect(waiter.reason).toBeInstanceOf(ClosedError);
    await expect(a.acquire()).rejects.toMatchObject({ message: "maintenance" });
    expect([a.closed, b.closed]).toEqual([true, true]);
    held.release();
  });

  test("a closed name is kept until its last holder releases: a new instance is closed, too", async () => {
    const sem = named(1);
    const held = await sem.acquire();
    sem.close();
    const young = named(1);
    expect([young.closed, young.inUse, young.tryAcquire()]).toEqual([true, 1, undefined]);
    await expect(young.acquire()).rejects.toBeInstanceOf(ClosedError);
    held.release();
  });

  test("a closed name is dropped when its last holder releases: it can then be created again, with any capacity", async () => {
    const sem = named(1);
    const held = await sem.acquire();
    sem.close();
    expect(world().registry.size).toBe(1);
    held.release();
    expect(world().registry.size).toBe(0);
    const young = named(5);
    const slot = await young.acquire();
    expect([young.closed, young.capacity, young.inUse]).toEqual([false, 5, 1]);
    slot.release();
  });

  test("an instance that was created while the name was closed works after the name is dropped", async () => {
    const sem = named(1);
    const held = await sem.acquire();
    sem.close();
    const young = named(1);
    held.release();
    const slot = await young.acquire();
    expect([young.closed, young.inUse]).toEqual([false, 1]);
    slot.release();
  });

  test("a closed name without holders is dropped at once", () => {
    const sem = named(1);
    sem.close();
    expect(world().registry.size).toBe(0);
    expect(named(2).closed).toBe(false);
  });

  test("a closed instance stays closed after its name is dropped and created again by others", async () => {
    const sem = named(1);
    sem.close();
    const young = named(1);
    const slot = await young.acquire();
    expect([sem.closed, sem.tryAcquire(), young.inUse]).toEqual([true, undefined, 1]);
    await expect(sem.acquire()).rejects.toBeInstanceOf(ClosedError);
    slot.release();
  });

  // Decision 3: remembering closed names for ever would be a leak.
  test("an instance can use its name again after others created it again and closed it", async () => {
    const old = named(1);
    world().clock.advance(60_000);
    expect(world().registry.sweep()).toBe(1);
    const young = named(1);
    young.close();
    expect([young.closed, old.closed]).toEqual([true, false]);
  });

  test("a different capacity for a closed name with holders is a mismatch, as for any other name", async () => {
    const sem = named(1);
    const held = await sem.acquire();
    sem.close();
    try {
      expect(() => named(2)).toThrow(CapacityMismatchError);
    } finally {
      held.release();
    }
  });
});

describe("a name never has two gates", () => {
  test("idle() of a closed instance does not take the name from the instances that have it now", async () => {
    const closed = named(1);
    closed.close();
    const slot = await named(1).acquire();
    await closed.idle();
    const second = named(1).tryAcquire();
    slot.release();
    second?.release();
    expect(second).toBeUndefined();
  });

  test("a sweep does not drop a held name because of the gate that had it before", async () => {
    world().semaphore(1, { name: "db", clock: new FakeClock() });
    const slot = await named(1).acquire();
    world().clock.advance(60_000);
    const dropped = world().registry.sweep();
    const second = named(1).tryAcquire();
    slot.release();
    second?.release();
    expect([dropped, second]).toEqual([0, undefined]);
  });

  test("calls to a closed instance do not affect the semaphore that has its name now", async () => {
    const closed = named(1);
    closed.close();
    const slot = await named(1).acquire();
    closed.close();
    closed.resize(5);
    expect([closed.tryAcquire(), closed.release(slot.id), closed.stats().inUse]).toEqual([undefined, false, 0]);
    expect([named(1).inUse, named(1).capacity, named(1).tryAcquire()]).toEqual([1, 1, undefined]);
    slot.release();
  });
});

describe("dropped names", () => {
  test("after a drop an old and a new instance share their slots", async () => {
    const old = named(1);
    world().clock.advance(60_000);
    expect([world().registry.sweep(), world().registry.size]).toEqual([1, 0]);
    const young = named(1);
    const slot = await old.acquire();
    expect([young.inUse, young.tryAcquire()]).toEqual([1, undefined]);
    slot.release();
    const again = await young.acquire();
    expect(old.tryAcquire()).toBeUndefined();
    again.release();
  });

  test("after a drop two old instances share their slots", async () => {
    const [a, b] = [named(1), named(1)];
    world().clock.advance(60_000);
    world().registry.sweep();
    const slot = await a.acquire();
    expect(b.tryAcquire()).toBeUndefined();
    slot.release();
  });

  test("a name with a holder, a waiter or a lease is never dropped", async () => {
    const sem = world().semaphore(1, { name: "db", ttlMs: 1_000_000 });
    const held = await sem.acquire();
    const waiter = outcome(sem.acquire());
    world().clock.advance(500_000);
    expect([world().registry.sweep(), world().registry.size]).toEqual([0, 1]);
    held.release();
    expect(world().registry.sweep()).toBe(0);
    await settled();
    waiter.value.release();
  });

  test("a new instance with another clock replaces the clock of the name if nothing is held", async () => {
    const registry = new SemaphoreRegistry({ clock: world().clock });
    new Semaphore(1, { name: "db", registry, clock: new FakeClock(), ttlMs: 10 }).tryAcquire()?.release();
    const sem = new Semaphore(1, { name: "db", registry, clock: world().clock, ttlMs: 10 });
    const slot = await sem.acquire();
    world().clock.advance(10);
    expect(slot.released).toBe(true);
  });
});
