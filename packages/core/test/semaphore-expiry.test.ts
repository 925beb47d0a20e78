import { isSlotkeeperError, type SemaphoreEvent, SlotExpiredError } from "slotkeeper";
import { settled } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { Deferred } from "./deferred.ts";
import { outcome } from "./outcome.ts";
import { useWorld } from "./world.ts";

const world = useWorld();

describe("expiry", () => {
  test("after ttlMs the slot is released and goes to the next waiter", async () => {
    const sem = world().semaphore(1, { ttlMs: 100 });
    const held = await sem.acquire();
    const next = outcome(sem.acquire());
    world().clock.advance(99);
    expect([held.released, sem.waiting]).toEqual([false, 1]);
    world().clock.advance(1);
    expect([held.released, sem.waiting, sem.inUse]).toEqual([true, 0, 1]);
    await settled();
    next.value.release();
    expect(sem.stats()).toMatchObject({ acquired: 2, expired: 1, released: 1, inUse: 0 });
  });

  test("a late release by the old holder does nothing and never frees the slot of another caller", async () => {
    const sem = world().semaphore(1, { ttlMs: 100 });
    const old = await sem.acquire();
    const oldId = old.id;
    const next = outcome(sem.acquire());
    world().clock.advance(100);
    await settled();
    expect([old.release(), sem.release(oldId), old.release()]).toEqual([false, false, false]);
    expect([sem.inUse, next.value.released]).toEqual([1, false]);
    next.value.release();
    expect(sem.stats()).toMatchObject({ released: 1, expired: 1 });
  });

  test("an expiry emits an expired event and no released event", async () => {
    const events: SemaphoreEvent[] = [];
    const sem = world().semaphore(1, { ttlMs: 100, name: "lease", onEvent: (event) => events.push(event) });
    await sem.acquire();
    world().clock.advance(100);
    expect(events.map(({ type }) => type)).toEqual(["acquired", "expired"]);
    expect(events[1]).toMatchObject({ type: "expired", name: "lease", number: 1, capacity: 1, at: 1_000_100 });
  });

  test("the ttl of a slot begins with the grant, not with the request", async () => {
    const sem = world().semaphore(1, { ttlMs: 100 });
    const held = await sem.acquire();
    const next = outcome(sem.acquire());
    world().clock.advance(60);
    held.release();
    await settled();
    expect(next.value.expiresAt).toBe(1_000_160);
    world().clock.advance(99);
    expect(next.value.released).toBe(false);
    world().clock.advance(1);
    expect(next.value.released).toBe(true);
  });

  test("expiresAt is the instant of expiry, and undefined without a ttl or after the slot has ended", async () => {
    const leased = world().semaphore(1, { ttlMs: 100 });
    const slot = await leased.acquire();
    expect(slot.expiresAt).toBe(1_000_100);
    slot.release();
    expect(slot.expiresAt).toBeUndefined();
    const plain = world().semaphore(1);
    const forEver = await plain.acquire();
    expect(forEver.expiresAt).toBeUndefined();
    forEver.release();
  });

  test("a release clears the timer of the ttl", async () => {
    const sem = world().semaphore(2, { ttlMs: 100 });
    const slots = [await sem.acquire(), await sem.acquire()];
    for (const slot of slots) slot.release();
    expect(world().clock.pending).toBe(0);
    world().clock.advance(1_000);
    expect(sem.stats()).toMatchObject({ released: 2, expired: 0 });
  });

  test("without abortOnExpiry the slot's signal never aborts", async () => {
    const sem = world().semaphore(1, { ttlMs: 100 });
    const slot = await sem.acquire();
    const { signal } = slot;
    world().clock.advance(100);
    expect([slot.released, signal.aborted, slot.signal === signal]).toEqual([true, false, true]);
  });

  test("with abortOnExpiry the slot's signal aborts with SlotExpiredError", async () => {
    const sem = world().semaphore(1, { ttlMs: 100, abortOnExpiry: true, name: "lease" });
    const { signal } = await sem.acquire();
    world().clock.advance(100);
    expect(signal.reason).toBeInstanceOf(SlotExpiredError);
    expect(signal.reason).toMatchObject({ code: "SLOT_EXPIRED", heldMs: 100, semaphore: "lease" });
  });

  test("with abortOnExpiry a signal that is first read after the expiry is aborted, too", async () => {
    const sem = world().semaphore(1, { ttlMs: 100, abortOnExpiry: true });
    const slot = await sem.acquire();
    world().clock.advance(100);
    expect(slot.signal.reason).toBeInstanceOf(SlotExpiredError);
  });

  test("the signal of a slot that was released in time does not abort", async () => {
    const sem = world().semaphore(1, { ttlMs: 100, abortOnExpiry: true });
    const slot = await sem.acquire();
    const { signal } = slot;
    slot.release();
    world().clock.advance(1_000);
    expect(signal.aborted).toBe(false);
  });
});

describe("renew", () => {
  test("an invalid ttl is refused with the name of the field", async () => {
    const slot = await world().semaphore(1).acquire();
    expect(() => slot.renew(-1)).toThrow("`ttlMs`");
    slot.release();
  });

  test("slots with the same ttl share one timer", async () => {
    const sem = world().semaphore(3, { ttlMs: 100 });
    const slots = [await sem.acquire(), await sem.acquire(), await sem.acquire()];
    expect(world().clock.pending).toBe(1);
    for (const slot of slots) slot.release();
  });

  test("renewing postpones the expiry by a whole ttl", async () => {
    const sem = world().semaphore(1, { ttlMs: 100 });
    const slot = await sem.acquire();
    world().clock.advance(60);
    expect(slot.renew()).toBe(true);
    expect(slot.expiresAt).toBe(1_000_160);
    world().clock.advance(99);
    expect(slot.released).toBe(false);
    world().clock.advance(1);
    expect(slot.released).toBe(true);
  });

  test("renewing with another ttl counts from now, longer or shorter", async () => {
    const sem = world().semaphore(2, { ttlMs: 100 });
    const longer = await sem.acquire();
    const shorter = await sem.acquire();
    longer.renew(500);
    shorter.renew(10);
    world().clock.advance(10);
    expect([shorter.released, longer.released]).toEqual([true, false]);
    world().clock.advance(489);
    expect(longer.released).toBe(false);
    world().clock.advance(1);
    expect(longer.released).toBe(true);
  });

  test("renewing one slot does not change the ttl of the others", async () => {
    const sem = world().semaphore(3, { ttlMs: 100 });
    const slots = [await sem.acquire(), await sem.acquire(), await sem.acquire()];
    world().clock.advance(50);
    slots[0]?.renew();
    world().clock.advance(50);
    expect(slots.map((slot) => slot.released)).toEqual([false, true, true]);
    world().clock.advance(50);
    expect(slots.map((slot) => slot.released)).toEqual([true, true, true]);
  });

  test("renew returns false after a release or expiry, and changes nothing", async () => {
    const sem = world().semaphore(2, { ttlMs: 100 });
    const expired = await sem.acquire();
    const released = await sem.acquire();
    released.release();
    world().clock.advance(100);
    expect([expired.renew(), released.renew(50)]).toEqual([false, false]);
    expect([sem.inUse, world().clock.pending]).toEqual([0, 0]);
  });

  test("renewing with a ttl gives a ttl to a slot that had none", async () => {
    const sem = world().semaphore(1);
    const slot = await sem.acquire();
    expect(slot.renew()).toBe(true);
    expect(slot.expiresAt).toBeUndefined();
    expect(slot.renew(50)).toBe(true);
    expect(slot.expiresAt).toBe(1_000_050);
    world().clock.advance(50);
    expect([slot.released, sem.stats().expired]).toEqual([true, 1]);
  });

  test("a renewed slot of a semaphore with abortOnExpiry but no ttl of its own aborts its signal when it expires", async () => {
    const sem = world().semaphore(1, { abortOnExpiry: true, name: "late-lease" });
    const slot = await sem.acquire();
    const { signal } = slot;
    slot.renew(50);
    world().clock.advance(50);
    expect(slot.released).toBe(true);
    expect(signal.reason).toBeInstanceOf(SlotExpiredError);
    expect(signal.reason).toMatchObject({ semaphore: "late-lease" });
  });

  test("renewing with Infinity removes the ttl", async () => {
    const sem = world().semaphore(1, { ttlMs: 100 });
    const slot = await sem.acquire();
    expect(slot.renew(Infinity)).toBe(true);
    expect([slot.expiresAt, world().clock.pending]).toEqual([undefined, 0]);
    world().clock.advance(1e9);
    expect(slot.release()).toBe(true);
  });

  test("a ttl longer than a host's longest timer does not fire early", async () => {
    const days = 86_400_000;
    const sem = world().semaphore(1, { ttlMs: 60 * days });
    const slot = await sem.acquire();
    world().clock.advance(59 * days);
    expect(slot.released).toBe(false);
    world().clock.advance(days);
    expect(slot.released).toBe(true);
  });

  test("heldMs counts from the grant, including renewals", async () => {
    const sem = world().semaphore(1, { ttlMs: 100, abortOnExpiry: true });
    const slot = await sem.acquire();
    world().clock.advance(80);
    slot.renew();
    world().clock.advance(100);
    expect(slot.signal.reason).toMatchObject({ heldMs: 180 });
  });
});

describe("run with a ttl", () => {
  test("with abortOnExpiry run rejects with SlotExpiredError at once, before the work ends", async () => {
    const sem = world().semaphore(1, { ttlMs: 100, abortOnExpiry: true });
    const run = outcome(sem.run(() => new Promise(() => {})));
    await world().clock.advanceAsync(100);
    expect(run.reason).toBeInstanceOf(SlotExpiredError);
    expect(isSlotkeeperError(run.reason)).toBe(true);
    expect(sem.inUse).toBe(0);
  });

  test("with abortOnExpiry the work can stop when the slot's signal aborts", async () => {
    const sem = world().semaphore(1, { ttlMs: 100, abortOnExpiry: true });
    let seen: unknown;
    const run = outcome(
      sem.run(
        ({ signal }) =>
          new Promise<void>((resolve) => {
            signal.addEventListener("abort", () => {
              seen = signal.reason;
              resolve();
            });
          }),
      ),
    );
    await world().clock.advanceAsync(100);
    expect(seen).toBeInstanceOf(SlotExpiredError);
    expect(run.reason).toBe(seen);
  });

  test("with abortOnExpiry a later failure of the work is ignored", async () => {
    const sem = world().semaphore(1, { ttlMs: 100, abortOnExpiry: true });
    const unhandled: unknown[] = [];
    const listener = (reason: unknown) => unhandled.push(reason);
    process.on("unhandledRejection", listener);
    const work = new Deferred();
    const run = outcome(sem.run(() => work.promise));
    await world().clock.advanceAsync(100);
    work.reject(new Error("too late to matter"));
    await new Promise((resolve) => setImmediate(resolve));
    process.off("unhandledRejection", listener);
    expect(run.reason).toBeInstanceOf(SlotExpiredError);
    expect(unhandled).toEqual([]);
  });

  test("without abortOnExpiry the work continues after the expiry, and run returns its result", async () => {
    const sem = world().semaphore(1, { ttlMs: 100 });
    const work = new Deferred<string>();
    const run = outcome(sem.run(() => work.promise));
    await world().clock.advanceAsync(100);
    expect([run.status, sem.inUse]).toEqual(["pending", 0]);
    work.resolve("done");
    await settled();
    expect(run.value).toBe("done");
    expect(sem.stats()).toMatchObject({ expired: 1, released: 0 });
  });

  test("a ttl has no effect on work that ends in time", async () => {
    const sem = world().semaphore(1, { ttlMs: 100, abortOnExpiry: true });
    expect(await sem.run(() => "done")).toBe("done");
    world().clock.advance(1_000);
    expect(sem.stats()).toMatchObject({ released: 1, expired: 0 });
  });

  test("with abortOnExpiry, run does not start the work if the slot expires after the hand-off and before it", async () => {
    const sem = world().semaphore(1, { ttlMs: 100, abortOnExpiry: true });
    const held = await sem.acquire();
    let started = 0;
    const run = outcome(
      sem.run(() => {
        started++;
        return new Promise(() => {});
      }),
    );
    held.release();
    world().clock.advance(100);
    await settled();
    expect(run.status).toBe("rejected");
    expect(run.reason).toBeInstanceOf(SlotExpiredError);
    expect([started, sem.inUse]).toEqual([0, 0]);
  });

  test("with abortOnExpiry, if the work renews a slot that had no ttl, run rejects when it expires", async () => {
    const sem = world().semaphore(1, { abortOnExpiry: true });
    const run = outcome(
      sem.run((slot) => {
        slot.renew(50);
        return new Promise(() => {});
      }),
    );
    await world().clock.advanceAsync(50);
    expect(sem.inUse).toBe(0);
    expect(run.status).toBe("rejected");
    expect(run.reason).toBeInstanceOf(SlotExpiredError);
  });
});
