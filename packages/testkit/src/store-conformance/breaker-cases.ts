import { resolveHost, resolveOptions } from "@slotkeeper/queue";
import { expect, test } from "vitest";
import type { NewHost } from "./describe-slot-store.ts";
import type { ConformanceOptions } from "./store-under-test.ts";

const { breaker: base } = resolveHost(resolveOptions(), undefined).policy;
const breaker = { ...base, windowMs: 900, openMs: 300 };

/** The breaker, and the push. */
export function breakerCases(newHost: NewHost, skip: NonNullable<ConformanceOptions["skip"]>): void {
  test("the breaker opens on errors in a row, and says so before anybody queues", async () => {
    const host = newHost({ breaker });
    const check = () => host.store.checkThrottle({ host: host.host, policy: host.policy });
    for (const status of [503, 503, 404, 503]) await host.report(status);
    expect((await check()).breaker).toEqual({ phase: "closed" });
    await host.report(503);
    expect((await check()).breaker).toMatchObject({ phase: "open", code: 503 });
    const { verdicts } = await host.try(["a-1"]);
    expect(verdicts[0]).toMatchObject({ status: "THROTTLED", code: 503 });
  });

  test.each([
    { name: "ratio", statuses: [200, 200, 200, 200, 503, 200, 200, 503] },
    { name: "fast ratio", statuses: [200, 503, 200, 503] },
  ])("the breaker opens on the $name of errors", async ({ statuses }) => {
    const host = newHost({ breaker });
    for (const status of statuses.slice(0, -1)) expect(await host.report(status)).toEqual({ phase: "closed" });
    expect(await host.report(statuses.at(-1) as number)).toMatchObject({ phase: "open" });
  });

  test("errors of an earlier window are forgotten", async () => {
    const host = newHost({ breaker });
    for (const status of [503, 503, 503]) await host.report(status);
    await host.pass(950);
    expect(await host.report(503)).toEqual({ phase: "closed" });
  });

  test("half open: one probe in the whole fleet; its success closes the breaker", async () => {
    const host = newHost({ breaker, slots: 3 });
    for (let count = 0; count < 4; count++) await host.report(503);
    await host.pass(330);
    const { verdicts } = await host.try(["a-1", "b-1"], "one");
    expect(verdicts.map(({ status }) => status)).toEqual(["ACQUIRED", "WAIT"]);
    expect(verdicts[1]).toMatchObject({ blockedBy: "breaker" });
    expect(await host.statuses(["c-1"], "two")).toEqual(["WAIT"]);
    if (verdicts[0]?.status === "ACQUIRED") await host.release(verdicts[0].slot.slotToken, { status: 200 });
    expect(await host.statuses(["b-1", "c-1", "d-1"])).toEqual(["ACQUIRED", "ACQUIRED", "ACQUIRED"]);
  });

  test("half open: an error opens it again; an unknown outcome lets the next probe go", async () => {
    const host = newHost({ breaker, slots: 3 });
    for (let count = 0; count < 4; count++) await host.report(503);
    await host.pass(330);
    await host.release((await host.take("a-1")).slotToken);
    const second = await host.take("b-1");
    await host.release(second.slotToken, { status: 503 });
    expect((await host.try(["c-1"])).verdicts[0]).toMatchObject({ status: "THROTTLED", code: 503 });
  });

  test("half open: without an error for as long as it was open, it closes", async () => {
    const host = newHost({ breaker, slots: 3 });
    for (let count = 0; count < 4; count++) await host.report(503);
    await host.pass(620);
    expect(await host.statuses(["a-1", "b-1"])).toEqual(["ACQUIRED", "ACQUIRED"]);
  });

  test("a session with a window of its own reads the breaker by it", async () => {
    const host = newHost({ breaker, slots: 3 });
    for (let count = 0; count < 4; count++) await host.report(503);
    await host.pass(60);
    const patient = host.waiter("a-1");
    const hasty = host.waiter("b-1", { openMs: 50 });
    expect(await host.statuses([patient, hasty])).toEqual(["THROTTLED", "ACQUIRED"]);
  });

  test("an operator opens and closes it", async () => {
    const host = newHost({ breaker });
    const { policy } = host;
    await host.store.operate({ kind: "breaker", host: host.host, policy, isOpen: true });
    expect((await host.try(["a-1"])).verdicts[0]).toMatchObject({ status: "THROTTLED", code: 0 });
    await host.store.operate({ kind: "breaker", host: host.host, policy, isOpen: false });
    expect(await host.statuses(["b-1"])).toEqual(["ACQUIRED"]);
  });

  test.skipIf(skip.push !== undefined)(
    `a freed slot is pushed to whoever listens${skip.push === undefined ? "" : `: ${skip.push}`}`,
    async () => {
      const host = newHost({ slots: 1 });
      const { slotToken } = await host.take("a-1");
      const pushed = new Promise<string | undefined>((resolve) => {
        const stop = host.store.onFreed((freed) => {
          if (freed.host !== host.host) return;
          stop();
          resolve(freed.bucket);
        });
      });
      await host.release(slotToken);
      expect(await pushed).toBe("a");
    },
  );
}
