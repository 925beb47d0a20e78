// The client trusts nothing that a service answers: on a fake clock, against a service that answers by a script.
import {
  AcquireTimeoutError,
  OverloadedError,
  type Pending,
  RefusedError,
  type ServiceSlot,
  ThrottledError,
  UnavailableError,
} from "@slotkeeper/client";
import { afterEach, describe, expect, test, vi } from "vitest";
import { after, granted, outcomeOf, pending, ScriptedService } from "./scripted-service.ts";

const host = { hostname: "example.com", bucket: "me" };

afterEach(async () => {
  // Cancellations end after some seconds; what is left then was forgotten.
  await vi.advanceTimersByTimeAsync(10_000);
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

describe("a lease counts from the sending of the request", () => {
  test("a grant that arrives after its lease has ended starts no work", async () => {
    const service = new ScriptedService();
    service.acquire = () => after(4_000, { ...granted, leaseMs: 3_000 });
    let runs = 0;
    const running = service.client({ maxWaitMs: 15_000 }).run(host, () => void runs++);
    expect(await outcomeOf(running)).toBeInstanceOf(AcquireTimeoutError);
    expect(runs).toBe(0);
    expect(service.named("cancel")).toHaveLength(1);
  });

  test("after a late grant the client polls again, and uses the slot for what is left of it", async () => {
    const service = new ScriptedService();
    service.acquire = ({ body }) =>
      body["queryToken"] === undefined
        ? after(4_000, { ...granted, leaseMs: 3_000 })
        : after(100, { ...granted, leaseMs: 2_000 });
    service.renew = () => new Promise(() => {});
    const slot = (await outcomeOf(service.client().acquire(host))) as ServiceSlot;
    expect(service.named("acquire").map(({ body }) => body["queryToken"])).toEqual([undefined, granted.queryToken]);
    const sentAt = service.named("acquire")[1]?.at ?? 0;
    const lostAt = new Promise<number>((resolve) =>
      slot.signal.addEventListener("abort", () => resolve(performance.now())),
    );
    expect(await outcomeOf(lostAt)).toBe(sentAt + 2_000);
    expect(slot.signal.reason).toMatchObject({ code: "SLOT_LOST" });
  });

  test("a grant with time left is used, renewed at 60 % and lost at the end, both counted from the sending", async () => {
    const service = new ScriptedService();
    service.acquire = () => after(1_000, { ...granted, leaseMs: 10_000 });
    service.renew = () => Response.json({}, { status: 503 });
    const startedAt = performance.now();
    const slot = (await outcomeOf(service.client().acquire(host))) as ServiceSlot;
    expect(slot.expiresAt).toBeLessThanOrEqual(Date.now() + 9_000);
    await vi.advanceTimersByTimeAsync(startedAt + 6_000 - performance.now());
    expect(service.named("renew").map(({ at }) => at - startedAt)).toEqual([6_000]);
    await vi.advanceTimersByTimeAsync(startedAt + 9_999 - performance.now());
    expect(slot.signal.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(slot.signal.aborted).toBe(true);
  });

  test("a late answer to a renewal does not prolong the lease beyond what it is worth", async () => {
    const service = new ScriptedService();
    service.acquire = () => ({ ...granted, leaseMs: 10_000 });
    service.renew = () => after(3_500, { result: "ok", leaseMs: 3_000 });
    const slot = (await outcomeOf(service.client().acquire(host))) as ServiceSlot;
    // The renewal was sent at 6 s and is worth a lease until 9 s, which has passed when its answer is there.
    const renewed = outcomeOf(slot.renew());
    expect(await renewed).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(slot.signal.aborted).toBe(true);
  });

  test("a lease of 30 days is not lost at once, and is renewed", async () => {
    const service = new ScriptedService();
    const leaseMs = 30 * 86_400_000;
    service.acquire = () => ({ ...granted, leaseMs });
    service.renew = () => ({ result: "ok", leaseMs });
    const slot = (await outcomeOf(service.client().acquire(host))) as ServiceSlot;
    await vi.advanceTimersByTimeAsync(86_400_000);
    expect([slot.signal.aborted, service.named("renew").length]).toEqual([false, 0]);
    await vi.advanceTimersByTimeAsync(60 * 86_400_000);
    expect(slot.signal.aborted).toBe(false);
    expect(service.named("renew").length).toBeGreaterThan(2);
    await outcomeOf(slot.release());
  });

  test("a release of a long lease that is never accepted is repeated with growing pauses", async () => {
    const service = new ScriptedService();
    service.acquire = () => ({ ...granted, leaseMs: 600_000 });
    service.release = () => ({ result: "yes" });
    const slot = (await outcomeOf(service.client().acquire(host))) as ServiceSlot;
    expect(await outcomeOf(slot.release())).toBe(true);
    // After half a minute the pauses, which are shorter than a call's timeout of 8 s, do not keep a process alive.
    await vi.advanceTimersByTimeAsync(40_000);
    const timers = vi.spyOn(globalThis, "setTimeout");
    await vi.advanceTimersByTimeAsync(660_000);
    const pauses = timers.mock.calls.flatMap(([, ms = 0], index) =>
      ms < 8_000 ? [timers.mock.results[index]?.value] : [],
    );
    expect(pauses.length).toBeGreaterThan(50);
    expect(pauses.filter((pause) => pause?.hasRef())).toEqual([]);
    expect(service.named("release").length).toBeGreaterThan(100);
    expect(service.named("release").length).toBeLessThan(300);
  });

  test("very short leases make no storm of renewals", async () => {
    const service = new ScriptedService();
    service.acquire = () => ({ ...granted, leaseMs: 30 });
    service.renew = () => ({ result: "ok", leaseMs: 30 });
    const slot = (await outcomeOf(service.client().acquire(host))) as ServiceSlot;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(service.named("renew").length).toBeLessThanOrEqual(40);
    await outcomeOf(slot.release());
  });
});

describe("pauses between calls", () => {
  test("with a long maxWaitMs, held polls follow each other without a pause", async () => {
    const service = new ScriptedService();
    const heldMs = 6_000;
    service.acquire = () => (service.named("acquire").length < 10 ? after(heldMs, pending) : granted);
    const startedAt = performance.now();
    const slot = (await outcomeOf(service.client({ maxWaitMs: 900_000 }).acquire(host))) as ServiceSlot;
    expect(performance.now() - startedAt).toBeLessThan(9 * heldMs + 100);
    await outcomeOf(slot.release());
  });

  test("with a short maxWaitMs, quick answers are spaced so that the attempts last for the whole wait", async () => {
    const service = new ScriptedService();
    service.acquire = () => pending;
    const error = await outcomeOf(service.client({ maxWaitMs: 800, maxAttempts: 5 }).acquire(host));
    expect(error).toMatchObject({ code: "ACQUIRE_TIMEOUT", waitedMs: 800 });
    expect(service.named("acquire").map(({ at }) => at - (service.calls[0]?.at ?? 0))).toEqual([0, 160, 320, 480, 640]);
  });

  test("with a long maxWaitMs, quick answers are spaced by half a second", async () => {
    const service = new ScriptedService();
    service.acquire = () => (service.named("acquire").length < 10 ? pending : granted);
    const startedAt = performance.now();
    const slot = (await outcomeOf(service.client({ maxWaitMs: 900_000 }).acquire(host))) as ServiceSlot;
    const passedMs = performance.now() - startedAt;
    expect(passedMs).toBeGreaterThanOrEqual(9 * 500);
    expect(passedMs).toBeLessThan(9 * 500 + 100);
    await outcomeOf(slot.release());
  });

  test.each([
    ["pending", pending],
    ["a forgotten session", { result: "timeout", reason: "unknown-token" }],
    ["grants that end at once", { ...granted, leaseMs: 1 }],
    ["an unexpected result", { result: "maybe" }],
  ])("a service that always answers %s at once is not flooded", async (_, reply) => {
    for (const onPending of [undefined, () => {}]) {
      const service = new ScriptedService();
      // Every answer takes a millisecond, as over a network.
      service.acquire = () => after(1, reply);
      expect(await outcomeOf(service.client().acquire({ ...host, onPending }))).toBeInstanceOf(Error);
      expect(service.named("acquire").length).toBeLessThanOrEqual(50);
      await vi.advanceTimersByTimeAsync(10_000);
    }
  });

  test("tryAcquire does not flood a service that never says what a session waits for", async () => {
    const service = new ScriptedService();
    service.acquire = () => after(1, { ...pending, blockedBy: undefined });
    expect(await outcomeOf(service.client().semaphore("jobs", 1).tryAcquire())).toBeUndefined();
    expect(service.named("acquire").length).toBeLessThanOrEqual(30);
  });

  test("maxWaitMs is measured by the monotonic clock: setting the wall clock does not change it", async () => {
    for (const jumpMs of [-3_600_000, 3_600_000]) {
      const service = new ScriptedService();
      service.acquire = () => after(100, pending);
      const startedAt = performance.now();
      const acquired = service.client({ maxWaitMs: 2_000 }).acquire(host);
      setTimeout(() => vi.setSystemTime(Date.now() + jumpMs), 500);
      const error = (await outcomeOf(acquired)) as AcquireTimeoutError;
      expect(error).toBeInstanceOf(AcquireTimeoutError);
      expect(performance.now() - startedAt).toBeLessThanOrEqual(2_100);
      expect(error.waitedMs).toBeGreaterThanOrEqual(1_400);
      expect(error.waitedMs).toBeLessThanOrEqual(2_100);
      await vi.advanceTimersByTimeAsync(10_000);
    }
  });

  test("a lease does not end earlier or later because the wall clock is set", async () => {
    const service = new ScriptedService();
    service.renew = () => Response.json({}, { status: 500 });
    const slot = (await outcomeOf(service.client().acquire(host))) as ServiceSlot;
    await vi.advanceTimersByTimeAsync(1_000);
    vi.setSystemTime(Date.now() + 3_600_000);
    await vi.advanceTimersByTimeAsync(28_900);
    expect(slot.signal.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(200);
    expect(slot.signal.aborted).toBe(true);
  });

  test("options beyond the longest timer are not taken for zero", async () => {
    const service = new ScriptedService();
    service.acquire = () => after(1_000, granted);
    const slot = (await outcomeOf(
      service.client({ perRequestTimeoutMs: 1e12, maxWaitMs: 1e12 }).acquire(host),
    )) as ServiceSlot;
    expect([slot.guarded, service.calls.length]).toEqual([true, 1]);
    await outcomeOf(slot.release());
  });
});

describe("Retry-After", () => {
  const inAWhile = () => new Date(Date.now() + 5_000).toUTCString();
  test.each([
    ["-1", 1_000],
    ["0", 1_000],
    ["0.2", 1_000],
    ["-Infinity", 1_000],
    ["7", 7_000],
    ["1e300", 20_000],
    ["Infinity", 20_000],
    ["99999999999999999999", 20_000],
    ["Wed, 21 Oct 2015 07:28:00 GMT", 1_000],
    ["Wed, 21 Oct 9999 07:28:00 GMT", 20_000],
    ["a date in five seconds", 5_000],
  ])("%s of a busy service is bounded: %i ms", async (header, expectedMs) => {
    for (const status of [503, 429, 200]) {
      const service = new ScriptedService();
      service.acquire = () => {
        const value = header.startsWith("a date") ? inAWhile() : header;
        return Response.json({ garbage: true }, { status, headers: { "retry-after": value } });
      };
      const startedAt = performance.now();
      const error = await outcomeOf(service.client({ onFailure: "open" }).acquire(host));
      expect(error).toBeInstanceOf(OverloadedError);
      // A date has whole seconds.
      expect((error as OverloadedError).retryAfterMs).toBeLessThanOrEqual(expectedMs);
      expect((error as OverloadedError).retryAfterMs).toBeGreaterThanOrEqual(Math.max(1_000, expectedMs - 2_000));
      expect(performance.now() - startedAt).toBeLessThanOrEqual(20_100);
      expect(service.named("acquire").length).toBeLessThanOrEqual(20);
      await vi.advanceTimersByTimeAsync(10_000);
    }
  });

  test("with pending it delays the next poll, and a negative one makes no storm", async () => {
    const service = new ScriptedService();
    service.acquire = () => after(1, Response.json(pending, { headers: { "retry-after": "-1" } }));
    expect(await outcomeOf(service.client().acquire(host))).toBeInstanceOf(AcquireTimeoutError);
    expect(service.named("acquire").length).toBeLessThanOrEqual(20);
  });

  test.each(["", "soon", "NaN"])("%o counts as absent: the service is unreachable", async (value) => {
    const service = new ScriptedService();
    service.acquire = () => Response.json({}, { status: 503, headers: { "retry-after": value } });
    expect(await outcomeOf(service.client().acquire(host))).toBeInstanceOf(UnavailableError);
  });

  test("a breaker that is open for years has a time that a timer can wait", async () => {
    const service = new ScriptedService();
    service.acquire = () => ({ result: "throttled", throttleCode: 503, throttleRetryAfter: 2 ** 40, reason: "errors" });
    const error = await outcomeOf(service.client().acquire(host));
    expect(error).toBeInstanceOf(ThrottledError);
    expect((error as ThrottledError).retryAfterMs).toBe(2 ** 31 - 1);
  });
});

describe("an unexpected answer", () => {
  const without = (field: string) => Object.fromEntries(Object.entries(granted).filter(([name]) => name !== field));
  const replies: Record<string, () => object> = {
    "granted alone": () => ({ result: "granted" }),
    "granted without a token": () => without("slotToken"),
    "granted with a short token": () => ({ ...granted, slotToken: "short" }),
    "granted with a number as token": () => ({ ...granted, slotToken: 1e25 }),
    "granted without a lease": () => without("leaseMs"),
    "granted with a lease of 0": () => ({ ...granted, leaseMs: 0 }),
    "granted with a negative lease": () => ({ ...granted, leaseMs: -1 }),
    "granted with a text as lease": () => ({ ...granted, leaseMs: "30000" }),
    "granted with null as lease": () => ({ ...granted, leaseMs: null }),
    "granted without a fence": () => without("fence"),
    "granted without a limit": () => without("limit"),
    "granted in a list": () => ({ ...granted, result: ["granted"] }),
    "a whole list": () => [granted],
    "an unknown result": () => ({ result: "sure" }),
    "a result of a prototype": () => ({ result: "constructor" }),
    "a result without a text form": () => ({ result: { toString: 1 } }),
    "pending without a token": () => ({ ...pending, queryToken: undefined }),
    "pending with a position of 0": () => ({ ...pending, position: 0 }),
    "throttled without a time": () => ({ result: "throttled", throttleCode: 500, reason: "errors" }),
    "overloaded with a negative time": () => ({ result: "overloaded", retryAfter: -5 }),
    "timeout without a reason": () => ({ result: "timeout" }),
    "an answer to another call": () => ({ result: "ok" }),
    null: () => new Response("null"),
    "a number": () => new Response("5"),
    "a text": () => new Response('"granted"'),
    nothing: () => new Response(null, { status: 204 }),
    "a page": () => new Response("<!doctype html>", { headers: { "content-type": "text/html" } }),
    "broken UTF-8": () => new Response(new Uint8Array([0xff, 0xfe, 0x7b])),
    "deep JSON": () => new Response("[".repeat(60_000)),
    "a grant with status 500": () => Response.json(granted, { status: 500 }),
    "a grant with a redirect": () =>
      Response.json(granted, { status: 302, headers: { location: "http://evil.test/" } }),
  };

  test.each(Object.keys(replies))("%s: runs no work, is repeated, and ends as unavailable", async (name) => {
    const service = new ScriptedService();
    service.acquire = () => replies[name]?.() ?? {};
    let runs = 0;
    const error = await outcomeOf(service.client().run(host, () => void runs++));
    expect(error).toBeInstanceOf(UnavailableError);
    expect((error as UnavailableError).message).toMatch(/is unavailable: an .*answer .*with status \d+\.$/);
    expect(runs).toBe(0);
    expect(service.named("acquire").length).toBeGreaterThan(3);
  });

  test("followed by a proper one is forgotten", async () => {
    const service = new ScriptedService();
    service.acquire = () => (service.calls.length < 3 ? { result: "granted" } : granted);
    const slot = (await outcomeOf(service.client().acquire(host))) as ServiceSlot;
    expect(slot).toMatchObject({ guarded: true, token: granted.slotToken, fence: 7 });
    await outcomeOf(slot.release());
  });

  test.each([
    { result: "ok" },
    { result: "ok", leaseMs: "30000" },
    { result: "ok", leaseMs: -1 },
    { leaseMs: 30_000 },
    null,
  ])("%o to a renewal is repeated until a proper one comes", async (reply) => {
    const service = new ScriptedService();
    service.renew = () =>
      service.named("renew").length < 4 ? Response.json(reply) : { result: "ok", leaseMs: 30_000 };
    const slot = (await outcomeOf(service.client().acquire(host))) as ServiceSlot;
    await vi.advanceTimersByTimeAsync(35_000);
    expect([slot.signal.aborted, service.named("renew").length]).toEqual([false, 4]);
    await outcomeOf(slot.release());
  });

  test("to a release or a cancellation is repeated, too", async () => {
    const service = new ScriptedService();
    service.release = () => (service.named("release").length < 3 ? { result: "done" } : { result: "ok" });
    const slot = (await outcomeOf(service.client().acquire(host))) as ServiceSlot;
    await outcomeOf(slot.release());
    service.acquire = () => after(100, pending);
    service.cancel = () => (service.named("cancel").length < 3 ? { result: "ok" } : { result: "gone" });
    await outcomeOf(service.client({ maxWaitMs: 300 }).acquire(host));
    await vi.advanceTimersByTimeAsync(10_000);
    expect([service.named("release").length, service.named("cancel").length]).toEqual([3, 3]);
  });

  test("fields that a later version adds, and what it may wait for, are accepted", async () => {
    const service = new ScriptedService();
    const places: Pending[] = [];
    service.acquire = () =>
      service.calls.length < 2
        ? after(200, { ...pending, blockedBy: "paused", weather: "fine" })
        : { ...granted, weather: "fine" };
    const acquired = service.client().acquire({ ...host, onPending: (place) => places.push(place) });
    const slot = (await outcomeOf(acquired)) as ServiceSlot;
    // Nor does the listener get the token of the session, which is a secret.
    expect(places).toEqual([{ position: 1, waiters: 1, estimatedWaitMs: undefined, blockedBy: "paused" }]);
    await outcomeOf(slot.release());
  });
});

describe("a problem document", () => {
  const refusedWith = async (problem: unknown) => {
    const service = new ScriptedService();
    service.acquire = () => new Response(JSON.stringify(problem), { status: 400 });
    const error = (await outcomeOf(service.client().acquire(host))) as RefusedError;
    expect(error).toBeInstanceOf(RefusedError);
    expect(service.calls).toHaveLength(1);
    const { problem: code, reason, message } = error;
    return { code, reason, message: message.replace("The service at http://service.test refused the call with ", "") };
  };

  test.each([
    [
      { code: "BAD", errors: "none", detail: "why" },
      { code: "BAD", reason: "why", message: "status 400: why." },
    ],
    [
      { errors: { map: 1 }, title: "What" },
      { code: undefined, reason: "What", message: "status 400: What." },
    ],
    [
      { errors: [null, 5, { message: { toString: 1 } }, { message: "one" }, { message: "two" }] },
      { code: undefined, reason: "one; two", message: "status 400: one; two." },
    ],
    [
      { errors: [], detail: "why" },
      { code: undefined, reason: "why", message: "status 400: why." },
    ],
    [
      { code: 5, detail: { toString: 1 }, title: [] },
      { code: undefined, reason: undefined, message: "status 400." },
    ],
    [null, { code: undefined, reason: undefined, message: "status 400." }],
    ["refused", { code: undefined, reason: undefined, message: "status 400." }],
    [
      { detail: "\u001b[2Jline\r\nnext" },
      { code: undefined, reason: " [2Jline  next", message: "status 400:  [2Jline  next." },
    ],
  ])("%j is a refusal", async (problem, expected) => {
    expect(await refusedWith(problem)).toEqual(expected);
  });

  test("with a very long text is cut off", async () => {
    const { message } = await refusedWith({ detail: "x".repeat(50_000) });
    expect(message.length).toBeLessThan(600);
  });
});
