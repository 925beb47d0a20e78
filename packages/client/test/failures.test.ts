// Failures of networks and machines: the client retries with back-off, and nothing is left at the service.
import { OverloadedError, UnavailableError } from "@slotkeeper/client";
import type { Fault } from "@slotkeeper/testkit/proxy";
import { describe, expect, test, vi } from "vitest";
import { startWorld } from "./fixture.ts";

const host = { hostname: "example.com", bucket: "me" };
const oneSlot = { fairQueue: { maxSlotPerHost: 1, maxSlotPerIp: -1 } };

const faults: Record<string, Fault> = {
  reset: "reset",
  "black-holed": "black-hole",
  "answered too late": { slowMs: 1_500 },
  "lost on the way back": "lost-answer",
  "a gateway's 500": { status: 500 },
  "truncated JSON": "truncated",
};

describe("a call that fails", () => {
  test.each(Object.entries(faults))(
    "after %s the call is repeated, granted once, and leaves nothing behind",
    async (_, fault) => {
      const world = await startWorld(oneSlot);
      const keeper = world.client({ perRequestTimeoutMs: 1_000 });
      world.proxy.fault = () => (world.proxy.calls("acquire").length <= 2 ? fault : "none");
      const result = await keeper.run(host, () => "done");
      expect(result).toBe("done");
      expect(world.proxy.calls("acquire")).toHaveLength(3);
      const ids = world.proxy.calls("acquire").map(({ body }) => (JSON.parse(body) as { requestId: string }).requestId);
      expect(new Set(ids).size).toBe(1);
      await world.until({ slots: 0, sessions: 0 });
    },
  );

  test.each(Object.entries(faults))(
    "%s without an end: rejects as unavailable at its timeout, with the cause",
    async (_, fault) => {
      const world = await startWorld();
      const keeper = world.client({ perRequestTimeoutMs: 200, maxWaitMs: 700 });
      world.proxy.fault = (call) => (call.body.includes("waitMs") ? fault : "none");
      const startedAt = Date.now();
      const error = await keeper.acquire(host).catch((reason: unknown) => reason);
      expect(Date.now() - startedAt).toBeLessThan(1_500);
      expect(error).toBeInstanceOf(UnavailableError);
      expect(error).toMatchObject({ code: "UNAVAILABLE", retryable: true, cause: expect.any(Error) });
      expect((error as Error).message).toMatch(/^The service at http:\S+ is unavailable: .+\.$/);
      await world.until({ slots: 0, sessions: 0 });
    },
  );

  test("refused connections are retried until the service is available", async () => {
    const world = await startWorld();
    await world.proxy.refuse();
    const running = world.client().run(host, () => "done");
    setTimeout(() => void world.proxy.accept(), 300);
    expect(await running).toBe("done");
  });

  test("if connections are always refused, the message names the reason", async () => {
    const world = await startWorld();
    await world.proxy.refuse();
    const acquired = world.client({ maxWaitMs: 300 }).acquire(host);
    await expect(acquired).rejects.toThrow(/is unavailable: fetch failed \(ECONNREFUSED\)\.$/);
    await world.proxy.accept();
  });

  test("pauses grow and differ between clients that failed together", async () => {
    const world = await startWorld();
    world.proxy.fault = { status: 502 };
    const gaps = await Promise.all(
      [1, 2, 3].map(async (client) => {
        const acquired = world.client({ maxWaitMs: 1_500 }).acquire({ ...host, bucket: `b${client}` });
        await expect(acquired).rejects.toBeInstanceOf(UnavailableError);
        const times = world.proxy
          .calls("acquire")
          .filter(({ body }) => body.includes(`"b${client}"`))
          .map(({ at }) => at);
        return times.slice(1).map((at, index) => at - (times[index] ?? 0));
      }),
    );
    for (const [first = 0, , third = 0] of gaps) {
      expect(first).toBeGreaterThanOrEqual(45);
      expect(third).toBeGreaterThanOrEqual(195);
    }
    expect(new Set(gaps.map((own) => own.join())).size).toBe(3);
  });

  test("the Retry-After of a busy service is respected, even by timers that fire early, and ends as an OverloadedError", async () => {
    const world = await startWorld();
    const { setTimeout } = globalThis;
    vi.spyOn(globalThis, "setTimeout").mockImplementation((fire: () => void, ms = 0) =>
      setTimeout(fire, Math.max(0, ms - 100)),
    );
    world.proxy.fault = { status: 503, headers: { "retry-after": "1" } };
    const error = await world
      .client({ maxWaitMs: 1_500, onFailure: "open" })
      .acquire(host)
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(OverloadedError);
    expect(error).toMatchObject({ retryAfterMs: 1_000 });
    expect(world.proxy.calls("acquire").filter(({ body }) => body.includes("waitMs"))).toHaveLength(2);
  });
});

describe("a service that restarts", () => {
  test("a waiter asks the new process, which does not know it", async () => {
    const world = await startWorld(oneSlot);
    const keeper = world.client();
    const held = await keeper.acquire(host);
    const waiting = keeper.acquire({ ...host, onPending: () => {} });
    await world.until({ slots: 1, sessions: 1 });
    await expect.poll(() => world.proxy.calls("acquire").some(({ body }) => body.includes("queryToken"))).toBe(true);
    await world.stop();
    await world.start();
    const next = await waiting;
    expect(next.guarded).toBe(true);
    await next.release();
    await held.release();
    await world.until({ slots: 0, sessions: 0 });
  });

  test("a holder whose lease was lost with the old process is aborted", async () => {
    const world = await startWorld({ fairQueue: { zombieTimeoutSeconds: 1 } });
    const slot = await world.client().acquire(host);
    await world.stop();
    await world.start();
    await expect.poll(() => slot.signal.aborted, { timeout: 3_000 }).toBe(true);
    expect(slot.signal.reason).toMatchObject({ code: "SLOT_LOST" });
  });
});

describe("a release", () => {
  test("is retried until the service has it, after the caller has moved on", async () => {
    const world = await startWorld();
    const promises: Promise<unknown>[] = [];
    const keeper = world.client({ waitUntil: (promise) => promises.push(promise) });
    const slot = await keeper.acquire(host);
    await world.proxy.refuse();
    const startedAt = Date.now();
    expect(await slot.release()).toBe(true);
    expect(Date.now() - startedAt).toBeLessThan(1_500);
    expect(await world.left()).toEqual({ slots: 1, sessions: 0 });
    await world.proxy.accept();
    expect(promises).toHaveLength(1);
    await promises[0];
    expect(await world.left()).toEqual({ slots: 0, sessions: 0 });
  });

  test("that cannot be delivered stops when its lease ends, and rejects nothing", async () => {
    const world = await startWorld({ fairQueue: { zombieTimeoutSeconds: 1 } });
    const promises: Promise<unknown>[] = [];
    const keeper = world.client();
    const slot = await keeper.acquire({ ...host, waitUntil: (promise) => promises.push(promise) });
    world.proxy.fault = "reset";
    await slot.release();
    expect(await promises[0]).toBeUndefined();
    await world.until({ slots: 0, sessions: 0 });
  });
});
