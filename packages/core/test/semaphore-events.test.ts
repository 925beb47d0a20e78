import { logEvents, type SemaphoreEvent } from "slotkeeper";
import { settled } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { outcome } from "./outcome.ts";
import { useWorld } from "./world.ts";

const world = useWorld();

function recorder() {
  const events: SemaphoreEvent[] = [];
  return {
    events,
    onEvent: (event: SemaphoreEvent) => void events.push(event),
    types: () => events.map((e) => e.type),
  };
}

function failing(): void {
  throw new Error("listener");
}

describe("events", () => {
  test("an acquired event carries type, name, at, waitedMs, number and capacity", async () => {
    const { events, onEvent } = recorder();
    const sem = world().semaphore(2, { name: "db", onEvent });
    const slot = await sem.acquire();
    expect(events).toMatchObject([
      { type: "acquired", name: "db", at: 1_000_000, waitedMs: 0, number: slot.number, capacity: 2 },
    ]);
    slot.release();
  });

  test("the acquired event of a waiter has the time waited", async () => {
    const { events, onEvent } = recorder();
    const sem = world().semaphore(1, { onEvent });
    const held = await sem.acquire();
    const next = outcome(sem.acquire());
    world().clock.advance(70);
    held.release();
    await settled();
    expect(events.map(({ type, at, waitedMs }) => [type, at, waitedMs])).toEqual([
      ["acquired", 1_000_000, 0],
      ["released", 1_000_070, undefined],
      ["acquired", 1_000_070, 70],
    ]);
    next.value.release();
  });

  test("a released event carries the number of the slot that was released", async () => {
    const { events, onEvent } = recorder();
    const sem = world().semaphore(2, { onEvent });
    const slots = [await sem.acquire(), await sem.acquire()];
    slots[1]?.release();
    expect(events.at(-1)).toMatchObject({ type: "released", number: slots[1]?.number });
    slots[0]?.release();
    expect(events.at(-1)).toMatchObject({ type: "released", number: slots[0]?.number });
  });

  test("a double release emits no second event", async () => {
    const { onEvent, types } = recorder();
    const sem = world().semaphore(1, { onEvent });
    const slot = await sem.acquire();
    slot.release();
    slot.release();
    expect(types()).toEqual(["acquired", "released"]);
  });

  test("timed-out and aborted events carry the time waited", async () => {
    const { events, onEvent } = recorder();
    const sem = world().semaphore(1, { onEvent });
    const held = await sem.acquire();
    const controller = new AbortController();
    const waiters = [outcome(sem.acquire({ timeoutMs: 30 })), outcome(sem.acquire({ signal: controller.signal }))];
    world().clock.advance(30);
    world().clock.advance(5);
    controller.abort();
    await settled();
    expect(waiters.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(events.slice(1).map(({ type, waitedMs, number }) => [type, waitedMs, number])).toEqual([
      ["timed-out", 30, undefined],
      ["aborted", 35, undefined],
    ]);
    held.release();
  });

  test("closed and resized are events, and the capacity in them is the new one", () => {
    const { events, onEvent } = recorder();
    const sem = world().semaphore(1, { onEvent });
    sem.resize(3);
    sem.close();
    expect(events.map(({ type, capacity }) => [type, capacity])).toEqual([
      ["resized", 3],
      ["closed", 3],
    ]);
  });

  test("tryAcquire and run emit the same events", async () => {
    const { onEvent, types } = recorder();
    const sem = world().semaphore(1, { onEvent });
    sem.tryAcquire()?.release();
    await sem.run(() => 0);
    expect(types()).toEqual(["acquired", "released", "acquired", "released"]);
  });

  test("a throwing onEvent changes nothing", async () => {
    const sem = world().semaphore(1, { onEvent: failing, ttlMs: 100 });
    const held = await sem.acquire();
    const next = outcome(sem.acquire());
    const timed = outcome(sem.acquire({ timeoutMs: 10 }));
    world().clock.advance(10);
    expect(held.release()).toBe(true);
    await settled();
    expect([next.status, timed.status]).toEqual(["fulfilled", "rejected"]);
    world().clock.advance(100);
    expect(next.value.released).toBe(true);
    sem.resize(2);
    sem.close();
    expect(sem.stats()).toMatchObject({ acquired: 2, released: 1, expired: 1, timedOut: 1, inUse: 0 });
  });

  test("an onEvent whose promise rejects causes no unhandled rejection", async () => {
    const unhandled: unknown[] = [];
    const listener = (reason: unknown) => unhandled.push(reason);
    process.on("unhandledRejection", listener);
    const onEvent = (() => Promise.reject(new Error("later"))) as () => void;
    world().semaphore(1, { onEvent }).tryAcquire()?.release();
    await new Promise((resolve) => setImmediate(resolve));
    process.off("unhandledRejection", listener);
    expect(unhandled).toEqual([]);
  });

  test("the numbers in events are unique among the slots held", async () => {
    const held = new Set<number>();
    const onEvent = ({ type, number }: SemaphoreEvent) => {
      if (type === "acquired") {
        expect(held.has(number ?? 0)).toBe(false);
        held.add(number ?? 0);
      } else held.delete(number ?? 0);
    };
    const sem = world().semaphore(3, { onEvent });
    await sem.map(Array.from({ length: 40 }), () => settled(2));
    expect(held.size).toBe(0);
    expect(sem.stats().acquired).toBe(40);
  });
});

describe("logEvents", () => {
  test("a line for each acquire names the semaphore, the time it took, the slot's number and the number of slots", async () => {
    const lines: string[] = [];
    const logger = {
      info: (line: string) => lines.push(`info ${line}`),
      warn: (line: string) => lines.push(`warn ${line}`),
    };
    const sem = world().semaphore(3, { name: "db", ttlMs: 100, onEvent: logEvents(logger) });
    const first = await sem.acquire({ width: 3 });
    const next = outcome(sem.acquire());
    world().clock.advance(42);
    first.release();
    await settled();
    world().clock.advance(100);
    expect(next.value.released).toBe(true);
    expect(lines).toHaveLength(4);
    expect(lines[0]).toMatch(/^info .*db.*acquired.*1.*3.*0 ms/);
    expect(lines[1]).toMatch(/^info .*db.*released/);
    expect(lines[2]).toMatch(/^info .*db.*acquired.*1.*3.*42 ms/);
    expect(lines[3]).toMatch(/^warn .*db.*expired/);
  });

  test("events without a slot write no line", () => {
    const lines: string[] = [];
    const logger = { info: (line: string) => lines.push(line), warn: (line: string) => lines.push(line) };
    const sem = world().semaphore(1, { onEvent: logEvents(logger) });
    sem.resize(2);
    sem.close();
    expect(lines).toEqual([]);
  });
});
