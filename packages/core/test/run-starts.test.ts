import { settled } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { Deferred } from "./deferred.ts";
import { expiringGates, gates } from "./gates.ts";
import { outcome } from "./outcome.ts";
import { useWorld } from "./world.ts";

const world = useWorld();
const calls: [string, (signal: AbortSignal) => { signal?: AbortSignal; timeoutMs?: number } | undefined][] = [
  ["no options", () => undefined],
  ["{}", () => ({})],
  ["a timeout", () => ({ timeoutMs: 100 })],
  ["a signal", (signal) => ({ signal })],
];

/** A promise whose own `then` hides that of all promises. */
// oxlint-disable-next-line unicorn/no-thenable -- `run` must cope with it
const withThen = (value: () => unknown) => Object.defineProperty(Promise.resolve("value"), "then", { value });

describe.each(gates)("run of %s", (_, make) => {
  test.each(calls)("with %s starts the work before it returns if a slot is free", async (_, optionsWith) => {
    const gate = make(world());
    let isStarted = false;
    const run = gate.run(() => (isStarted = true), optionsWith(new AbortController().signal));
    expect(isStarted).toBe(true);
    await run;
    expect(gate.inUse).toBe(0);
    gate.close();
  });

  test("starts no work after its signal has aborted, whether it waited or not", async () => {
    const gate = make(world());
    let starts = 0;
    const controller = new AbortController();
    const held = await gate.acquire();
    const waiting = outcome(gate.run(() => starts++, { signal: controller.signal }));
    held.release();
    controller.abort("late");
    const late = outcome(gate.run(() => starts++, { signal: controller.signal }));
    await settled(20);
    expect([waiting.reason, late.reason, starts, gate.inUse]).toEqual(["late", "late", 0, 0]);
    gate.close();
  });

  const oddThens: [string, () => unknown][] = [
    ["never calls back", () => undefined],
    [
      "throws",
      () => {
        throw new Error("odd");
      },
    ],
  ];
  test.each(oddThens)("releases the slot of a promise whose own `then` %s", async (_, then) => {
    const gate = make(world());
    const odd = () => withThen(then);
    const held = await gate.acquire();
    const waited = outcome(gate.run(odd));
    held.release();
    await settled(20);
    expect([waited.value, gate.inUse]).toEqual(["value", 0]);
    expect(await gate.run(odd)).toBe("value");
    expect(gate.inUse).toBe(0);
    gate.close();
  });
});

describe.each(expiringGates)("run of %s with abortOnExpiry", (_, make) => {
  test("releases the slot of a promise whose own `then` never calls back", async () => {
    const gate = make(world(), { abortOnExpiry: true });
    expect(await gate.run(() => withThen(() => undefined))).toBe("value");
    expect(gate.inUse).toBe(0);
    gate.close();
  });

  test("keeps the process alive until the work has ended or the slot has expired, and no longer", async () => {
    const { clock } = world();
    const gate = make(world(), { abortOnExpiry: true, ttlMs: 50 });
    const work = new Deferred();
    const ended = gate.run(() => work.promise);
    expect(clock.keepingAlive).toBe(1);
    work.resolve();
    await ended;
    expect(clock.keepingAlive).toBe(0);
    const expired = outcome(gate.run(() => new Promise(() => {})));
    expect(clock.keepingAlive).toBe(1);
    await clock.advanceAsync(50);
    expect(expired.reason).toMatchObject({ code: "SLOT_EXPIRED" });
    expect(clock.keepingAlive).toBe(0);
    const held = await gate.acquire();
    expect(clock.keepingAlive).toBe(0);
    held.release();
    gate.close();
  });
});

describe("the order of starts", () => {
  test("is the order of the calls, whatever their options", async () => {
    const sem = world().semaphore(4);
    const { signal } = new AbortController();
    const order: string[] = [];
    await Promise.all([
      sem.run(() => order.push("signal"), { signal }),
      sem.run(() => order.push("plain")),
      sem.run(() => order.push("timeout"), { timeoutMs: 100 }),
      sem.run(() => order.push("empty"), {}),
    ]);
    expect(order).toEqual(["signal", "plain", "timeout", "empty"]);
  });
});
