import { expect, test } from "vitest";
import type { NewHost } from "./describe-slot-store.ts";

/** S6: the pool of waiters. */
export function poolCases(newHost: NewHost): void {
  test("S6: the pool never holds more waiters than its limit, however many ask at once", async () => {
    const host = newHost({ slots: 1, waiters: 3 });
    await host.take("z-1");
    const calls = Array.from({ length: 6 }, (_, index) => host.statuses([`b${index}-1`]));
    const statuses = (await Promise.all(calls)).flat();
    expect(statuses.filter((status) => status === "WAIT")).toHaveLength(3);
    expect(statuses.filter((status) => status === "QUEUE_FULL")).toHaveLength(3);
  });

  test("S6: nor more of a bucket than its limit", async () => {
    const host = newHost({ slots: 1, waitersPerBucket: 2 });
    await host.take("z-1");
    expect(await host.statuses(["a-1", "a-2", "a-3", "b-1"])).toEqual(["WAIT", "WAIT", "QUEUE_FULL", "WAIT"]);
  });

  test("S6: no bucket owns the pool: a newcomer two places poorer takes the youngest's place of the richest", async () => {
    const host = newHost({ slots: 1, waiters: 3 });
    await host.take("z-1");
    await host.statuses(["a-1", "a-2", "a-3"]);
    const poor = await host.try(["b-1"]);
    expect(poor.verdicts[0]).toMatchObject({ status: "WAIT" });
    expect(poor.displaced).toEqual([host.name("a-3")]);
    const equal = await host.try(["b-2"]);
    expect(equal.verdicts[0]).toMatchObject({ status: "QUEUE_FULL" });
    expect(equal.displaced).toEqual([]);
  });

  test("S6: one batch may displace a bucket and ask for it: places are counted once", async () => {
    const host = newHost({ slots: 1, waiters: 3 });
    await host.take("z-1");
    await host.statuses(["a-1", "a-2", "a-3"]);
    // b takes the place of a-3, and a-4 finds the pool full.
    expect(await host.statuses(["b-1", "a-4"])).toEqual(["WAIT", "QUEUE_FULL"]);
    for (const name of ["a-1", "a-2", "b-1"]) await host.withdraw(name, "canceled");
    expect(await host.statuses(["c-1", "c-2", "c-3", "c-4"])).toEqual(["WAIT", "WAIT", "WAIT", "QUEUE_FULL"]);
  });

  test("S6: a grant and an end give their places back", async () => {
    const host = newHost({ slots: 1, waiters: 1 });
    const first = await host.take("z-1");
    expect(await host.statuses(["a-1", "b-1"])).toEqual(["WAIT", "QUEUE_FULL"]);
    await host.release(first.slotToken);
    await host.take(host.waiter("a-1"));
    expect(await host.statuses(["b-1"])).toEqual(["WAIT"]);
    await host.withdraw("b-1", "canceled");
    expect(await host.statuses(["c-1"])).toEqual(["WAIT"]);
  });

  test("a waiter whose client is away keeps its place and is granted nothing", async () => {
    const host = newHost({ slots: 1, waiters: 1 });
    const away = host.waiter("a-1", { isGrantable: false });
    expect((await host.try([away])).verdicts[0]).toMatchObject({ status: "WAIT" });
    expect(await host.statuses(["b-1"])).toEqual(["QUEUE_FULL"]);
  });
}
