import { setTimeout as delay } from "node:timers/promises";
import { AcquireTimeoutError, OverloadedError, type Pending, RefusedError, ThrottledError } from "@slotkeeper/client";
import { describe, expect, test } from "vitest";
import { startWorld, type World } from "./fixture.ts";

const host = { hostname: "example.com", bucket: "me" };
const oneSlot = { fairQueue: { maxSlotPerHost: 1, maxSlotPerIp: -1 } };

describe("a free slot", () => {
  test("run makes one call, works while it holds the slot, and releases", async () => {
    const world = await startWorld();
    const keeper = world.client();
    const result = await keeper.run(host, async (slot) => {
      expect(slot).toMatchObject({ guarded: true, released: false, token: expect.stringMatching(/.{22}/) });
      expect(slot.fence).toBeGreaterThan(0);
      expect(await world.left()).toEqual({ slots: 1, sessions: 0 });
      return "result";
    });
    expect(result).toBe("result");
    expect(world.proxy.seen.map(({ path }) => path.split("/").at(-1))).toEqual(["acquire", "release"]);
    expect(await world.left()).toEqual({ slots: 0, sessions: 0 });
    expect(keeper.stats()).toEqual({ held: 0, unguarded: 0 });
  });

  test("run releases when the work fails, and passes the error on untouched", async () => {
    const world = await startWorld();
    const error = new Error("work failed");
    await expect(world.client().run(host, () => Promise.reject(error))).rejects.toBe(error);
    await world.until({ slots: 0, sessions: 0 });
  });

  test("a slot is released at the end of its scope, once", async () => {
    const world = await startWorld();
    const keeper = world.client();
    const scope = async () => {
      await using slot = await keeper.acquire(host);
      expect(await slot.release()).toBe(true);
      expect([await slot.release(), slot.released]).toEqual([false, true]);
    };
    await scope();
    expect(world.proxy.calls("release")).toHaveLength(1);
  });

  test("the status of the upstream opens the breaker, and the next caller is throttled with it", async () => {
    const world = await startWorld({ fairQueue: { breaker: { consecutiveErrors: 1, openSeconds: 7 } } });
    const keeper = world.client();
    const slot = await keeper.acquire(host);
    await slot.release({ status: 503 });
    const error = await keeper.acquire(host).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ThrottledError);
    expect(error).toMatchObject({ code: "THROTTLED", status: 503, retryAfterMs: 7_000, retryable: true });
    expect((error as Error).message).toBe('Requests to "example.com" are paused after status 503; try again in 7 s.');
  });

  test("onIgnored gets what the service ignored in `used`", async () => {
    const world = await startWorld({ fairQueue: { budgets: { tokens: { limit: 10, perSeconds: 60 } } } });
    const ignored: (readonly string[])[] = [];
    const onIgnored = (fields: readonly string[]) => {
      ignored.push(fields);
      throw new Error("an error of a hook is ignored");
    };
    const keeper = world.client();
    await (await keeper.acquire(host)).release({ used: { tokens: 2 }, onIgnored });
    expect(ignored).toEqual([]);
    expect(await (await keeper.acquire(host)).release({ used: { tokens: -2, coins: 1 }, onIgnored })).toBe(true);
    expect(ignored).toEqual([["used.tokens", "used.coins"]]);
    expect(world.proxy.seen.at(-1)?.body).not.toContain("onIgnored");
  });

  test("a breaker that an operator opened has no status", () => {
    const error = new ThrottledError({ hostname: "example.com", status: 0, reason: "operator", retryAfterMs: 5_000 });
    expect(error.message).toBe('Requests to "example.com" are paused; try again in 5 s.');
  });

  test("hashHostname sends only the hash, and shares the host with callers that send the name", async () => {
    const world = await startWorld(oneSlot);
    const slot = await world.client({ hashHostname: true }).acquire({ hostname: "Example.com" });
    expect(world.proxy.seen[0]?.body).not.toMatch(/example/i);
    await expect(world.client().acquire({ ...host, maxWaitMs: 300 })).rejects.toBeInstanceOf(AcquireTimeoutError);
    await slot.release();
  });

  test("the shared key is sent in the header, and a wrong one is refused immediately", async () => {
    const token = "a-shared-key-of-some-length";
    const world = await startWorld({ auth: { enabled: true, token, header: "X-Key" } });
    const error = await world
      .client({ token: "another", header: "X-Key" })
      .acquire(host)
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(RefusedError);
    expect(error).toMatchObject({ status: 401, problem: "UNAUTHORIZED", retryable: false });
    expect(world.proxy.seen).toHaveLength(1);
    await world.client({ token, header: "X-Key" }).run(host, () => {});
  });
});

describe("waiting", () => {
  test("a waiter gets its position, and the slot as soon as it is free", async () => {
    const world = await startWorld(oneSlot);
    const keeper = world.client();
    const held = await keeper.acquire(host);
    const places: Pending[] = [];
    const waiting = keeper.acquire({ ...host, onPending: (pending) => places.push(pending) });
    await expect.poll(() => places.length).toBeGreaterThan(0);
    expect(places[0]).toMatchObject({ position: 1, waiters: 1, blockedBy: "host-limit" });
    await held.release();
    const next = await waiting;
    expect(next.fence).toBeGreaterThan(held.fence);
    await next.release();
    expect(await world.left()).toEqual({ slots: 0, sessions: 0 });
  });

  test("a listener that throws has no effect on the wait", async () => {
    const world = await startWorld(oneSlot);
    const keeper = world.client();
    const held = await keeper.acquire(host);
    let calls = 0;
    const waiting = keeper.acquire({
      ...host,
      onPending: () => {
        calls++;
        throw new Error("the listener's own");
      },
    });
    await expect.poll(() => calls).toBe(1);
    await held.release();
    await (await waiting).release();
  });

  test("a wait ends at its timeout with a readable message, and leaves nothing behind", async () => {
    const world = await startWorld(oneSlot);
    const keeper = world.client();
    const held = await keeper.acquire(host);
    const error = await keeper.acquire({ ...host, maxWaitMs: 300 }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(AcquireTimeoutError);
    expect(error).toMatchObject({ code: "ACQUIRE_TIMEOUT", hostname: "example.com", position: 1 });
    expect((error as Error).message).toMatch(/^Waited \d{3,} ms for a slot of "example.com"\.$/);
    await world.until({ slots: 1, sessions: 0 });
    await held.release();
  });

  test("the deadline of the service ends the wait, too", async () => {
    const world = await startWorld({ fairQueue: { ...oneSlot.fairQueue, maxWaitMs: 300 } });
    const keeper = world.client();
    const held = await keeper.acquire(host);
    await expect(keeper.acquire(host)).rejects.toMatchObject({ code: "ACQUIRE_TIMEOUT" });
    await held.release();
  });

  test("a service with too many waiters gives an OverloadedError with the time of the next attempt", async () => {
    const world = await startWorld({ fairQueue: { ...oneSlot.fairQueue, globalMaxWaiters: 1 } });
    const keeper = world.client();
    const held = await keeper.acquire(host);
    const waiting = keeper.acquire({ ...host, maxWaitMs: 2_000 });
    await world.until({ slots: 1, sessions: 1 });
    const error = await keeper.acquire(host).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(OverloadedError);
    expect((error as OverloadedError).retryAfterMs).toBeGreaterThanOrEqual(1_000);
    expect((error as Error).message).toMatch(/^The service is full; try again in \d+ s\.$/);
    await held.release();
    await (await waiting).release();
  });
});

describe("leases", () => {
  /** Short for a test, and long for a busy machine: a renewal may be late by a second. */
  const LEASE_MS = 3_000;
  const shortLease = { fairQueue: { ...oneSlot.fairQueue, zombieTimeoutSeconds: LEASE_MS / 1000 } };

  test("a slot is renewed while it is held, and not afterwards", async () => {
    const world = await startWorld(shortLease);
    const keeper = world.client();
    const slot = await keeper.acquire(host);
    // On a busy machine a third one may come before this looks again.
    await expect.poll(() => world.proxy.calls("renew").length, { timeout: 20_000 }).toBeGreaterThanOrEqual(2);
    expect([slot.signal.aborted, await world.left()]).toEqual([false, { slots: 1, sessions: 0 }]);
    await slot.release();
    const renewed = world.proxy.calls("renew").length;
    await delay(LEASE_MS);
    expect(world.proxy.calls("renew")).toHaveLength(renewed);
  });

  test("a slot that was granted after a wait longer than its lease is held and renewed", async () => {
    const world = await startWorld(shortLease);
    const keeper = world.client();
    const held = await keeper.acquire(host);
    const waiting = keeper.run(host, async (slot) => {
      await delay(LEASE_MS + 200);
      return slot.signal.aborted;
    });
    await world.until({ slots: 1, sessions: 1 });
    await delay(LEASE_MS + 200);
    await held.release();
    expect(await waiting).toBe(false);
    await world.until({ slots: 0, sessions: 0 });
  });

  test("a slot that the service no longer knows aborts the work at the next renewal", async () => {
    const world = await startWorld(shortLease);
    const keeper = world.client();
    const slot = await keeper.acquire(host);
    const lost = new Promise((resolve) => slot.signal.addEventListener("abort", () => resolve(slot.signal.reason)));
    const body = JSON.stringify({ slotToken: slot.token });
    await fetch(`${world.direct}/api/v0/fairqueue/release`, { method: "POST", body });
    expect(await lost).toMatchObject({
      code: "SLOT_LOST",
      message: expect.stringContaining("it was taken back"),
    });
    expect([slot.released, await slot.release(), keeper.stats().held]).toEqual([true, false, 0]);
  });

  test("a slot that cannot be renewed is lost at the latest when its lease ends, and the work is aborted", async () => {
    const world = await startWorld(shortLease);
    const keeper = world.client({ perRequestTimeoutMs: 200 });
    const order: string[] = [];
    const work = keeper.run(host, async (slot) => {
      world.proxy.fault = "black-hole";
      await new Promise((resolve) => slot.signal.addEventListener("abort", resolve));
      order.push("aborted");
      throw slot.signal.reason;
    });
    await world.until({ slots: 1, sessions: 0 });
    // Client and service have one clock here: the work ends before another caller gets the slot.
    const body = JSON.stringify({ hostname: host.hostname, ipBucket: "other", waitMs: 6_000 });
    const next = fetch(`${world.direct}/api/v0/fairqueue/acquire`, { method: "POST", body })
      .then((response) => response.json() as Promise<{ result: string; slotToken: string }>)
      .finally(() => order.push("granted"));
    await expect(work).rejects.toMatchObject({ code: "SLOT_LOST" });
    const { result, slotToken } = await next;
    expect([result, order]).toEqual(["granted", ["aborted", "granted"]]);
    await fetch(`${world.direct}/api/v0/fairqueue/release`, { method: "POST", body: JSON.stringify({ slotToken }) });
    await world.until({ slots: 0, sessions: 0 });
  });
});

describe("a request with a width and costs", () => {
  const budgets = { requests: { limit: 10, perSeconds: 10_000 }, tokens: { limit: 1_000, perSeconds: 10_000 } };
  const limited = { fairQueue: { maxSlotPerHost: 3, maxSlotPerIp: -1, budgets } };
  const leftOf = async (world: World) =>
    Object.fromEntries((await world.state()).hosts[0]?.budgets?.map((it) => [it.name, Math.floor(it.available)]) ?? []);

  test("takes its slots together, and says what was charged; `used` gives back what was not used", async () => {
    const world = await startWorld(limited);
    const slot = await world.client().acquire({ ...host, width: 2, cost: { tokens: 600 } });
    expect(slot.charged).toEqual({ requests: 1, tokens: 600 });
    expect((await world.state()).hosts[0]).toMatchObject({ inFlight: 2, slots: [{ width: 2 }] });
    expect(await leftOf(world)).toEqual({ requests: 9, tokens: 400 });
    await slot.release({ used: { tokens: 100 } });
    await expect.poll(() => leftOf(world)).toEqual({ requests: 9, tokens: 900 });
  });

  test("waits for the budget, and gets its name; work may run with it, too", async () => {
    const world = await startWorld(limited);
    const keeper = world.client();
    const held = await keeper.acquire({ ...host, cost: { tokens: 900 } });
    const seen: (string | undefined)[] = [];
    const waiting = keeper.run(
      { ...host, cost: { tokens: 200 }, onPending: ({ blockedBy }) => seen.push(blockedBy) },
      (slot) => slot.charged["tokens"],
    );
    await expect.poll(() => seen.at(-1)).toBe("budget:tokens");
    await held.release({ used: { tokens: 0 } });
    expect(await waiting).toBe(200);
  });

  test("that can never be granted is refused with the field and the limit", async () => {
    const keeper = (await startWorld(limited)).client();
    const refusals = [{ width: 4 }, { cost: { tokens: 1_001 } }, { cost: { images: 1 } }].map((more) =>
      keeper.acquire({ ...host, ...more }).catch((error: unknown) => error),
    );
    expect(await Promise.all(refusals)).toMatchObject([
      { code: "REFUSED", status: 400, problem: "IMPOSSIBLE", message: expect.stringContaining("width") },
      { code: "REFUSED", status: 400, problem: "IMPOSSIBLE", message: expect.stringContaining("cost.tokens") },
      { code: "REFUSED", status: 400, problem: "IMPOSSIBLE", message: expect.stringContaining("cost.images") },
    ]);
  });

  test("at a host without budgets is charged nothing", async () => {
    await using slot = await (await startWorld()).client().acquire(host);
    expect(slot.charged).toEqual({});
  });
});

describe("a request of a class", () => {
  const classed = { fairQueue: { maxSlotPerHost: 3, classes: { chat: { weight: 4 } } } };

  test("sends it with `acquire`, and a semaphore has none", async () => {
    const world = await startWorld(classed);
    await using _slot = await world.client().acquire({ ...host, class: "chat" });
    expect((await world.state()).hosts[0]).toMatchObject({ slots: [{ class: "chat" }] });
    const jobs = world.client().semaphore("jobs", 1);
    await expect(jobs.acquire({ class: "chat" } as object)).rejects.toThrow("Unknown option `class`");
    await expect(world.client().acquire({ ...host, class: "chatt" })).rejects.toMatchObject({ problem: "IMPOSSIBLE" });
    await expect(world.client().acquire({ ...host, class: "" })).rejects.toThrow("Expected `class` to be a non-empty");
  });
});
