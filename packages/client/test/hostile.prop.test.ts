// A service that answers at random, on a fake clock: what the client promises holds whatever it answers.
import { type ServiceSlot, SlotClientError } from "@slotkeeper/client";
import * as fc from "fast-check";
import { afterEach, expect, test, vi } from "vitest";
import { after, granted, pending, type Reply, type ScriptedCall, ScriptedService } from "./scripted-service.ts";

const RUNS = process.env["SLOTKEEPER_LONG"] === "1" ? 10_000 : 150;

afterEach(() => void vi.useRealTimers());

const token = granted.slotToken;
const numbers = fc.constantFrom(-1, 0, 1, 2, 30, 1_000, 5_000, 30_000, 3e9, 1e300, 0.5);
const odd = fc.oneof(numbers, fc.constantFrom("", "x", token, null, [], {}, true, "__proto__", { toString: 1 }));
const results = fc.constantFrom("pending", "granted", "throttled", "timeout", "overloaded", "ok", "canceled", "x");
const proper = fc.oneof(
  fc.constantFrom<object>(
    pending,
    { ...pending, blockedBy: undefined },
    { result: "timeout", reason: "unknown-token" },
    { result: "ok", leaseMs: 0 },
    { result: "canceled" },
  ),
  fc.record({ result: fc.constant("granted"), leaseMs: fc.constantFrom(1, 5, 30, 700, 5_000, 3e9) }).map((changes) => ({
    ...granted,
    ...changes,
  })),
  fc.record({ result: fc.constant("ok"), leaseMs: fc.constantFrom(0, 1, 5, 30, 700, 5_000, 3e9) }),
);
const broken = fc.record(
  {
    result: fc.oneof(results, odd),
    queryToken: odd,
    slotToken: odd,
    leaseMs: odd,
    fence: odd,
    limit: odd,
    position: odd,
    waiters: odd,
    reason: odd,
    retryAfter: odd,
    errors: fc.oneof(odd, fc.array(fc.oneof(odd, fc.record({ message: odd })))),
    detail: odd,
    code: odd,
  },
  { requiredKeys: ["result"] },
);
const texts = fc.oneof(
  { weight: 4, arbitrary: proper.map((body) => JSON.stringify(body)) },
  { weight: 3, arbitrary: broken.map((body) => JSON.stringify(body)) },
  { weight: 1, arbitrary: fc.oneof(fc.string(), fc.constantFrom("null", "[]", "{", "x".repeat(70_000))) },
);
interface Answer {
  readonly text: string;
  readonly status: number;
  readonly retryAfter: string | null;
  readonly delayMs: number;
  readonly isLost: boolean;
}

const answers: fc.Arbitrary<Answer> = fc.record({
  text: texts,
  status: fc.oneof(
    { weight: 6, arbitrary: fc.constant(200) },
    { weight: 2, arbitrary: fc.constantFrom(201, 302, 307, 400, 401, 404, 408, 409, 410, 429, 500, 503) },
  ),
  retryAfter: fc.option(fc.constantFrom("-1", "0", "1", "1e9", "NaN", "x", "Wed, 21 Oct 2015 07:28:00 GMT"), {
    freq: 4,
  }),
  delayMs: fc.constantFrom(0, 1, 1, 10, 600, 4_000, 7_999, 60_000),
  isLost: fc.nat(9).map((chance) => chance === 0),
});

/** The same proper answers again and again, each within a millisecond: what a client might repeat its calls for. */
const quick = proper.map((body): Answer => {
  return { text: JSON.stringify(body), status: 200, retryAfter: null, delayMs: 1, isLost: false };
});

/** Gives the answers in turn, again and again. Returns until when a lease may be held, by all that was answered. */
function script(service: ScriptedService, replies: readonly Answer[]): () => number {
  let next = 0;
  let leasedUntil = 0;
  const reply = ({ at }: ScriptedCall): Reply => {
    const { text, status, retryAfter, delayMs, isLost } = replies[next++ % replies.length] as Answer;
    if (isLost) return Promise.reject(new TypeError("fetch failed"));
    const [, leaseMs = 0] = /"leaseMs":(\d+)/.exec(text) ?? [];
    leasedUntil = Math.max(leasedUntil, at + Number(leaseMs));
    const headers: Record<string, string> = retryAfter === null ? {} : { "retry-after": retryAfter };
    return after(delayMs, new Response(text, { status, headers }));
  };
  Object.assign(service, { acquire: reply, renew: reply, release: reply, cancel: reply });
  return () => leasedUntil;
}

/** No more than 50 calls in any second, with all renewals and retries. */
function expectNoStorm(service: ScriptedService): void {
  const times = service.calls.map(({ at }) => at);
  for (const [index, at] of times.entries()) expect((times[index + 50] ?? Infinity) - at).toBeGreaterThan(1_000);
}

test("waits end in time, leases are not exceeded, calls are spaced, and only errors of the client are thrown", async () => {
  const seen = { slots: 0, errors: new Set<string>() };
  const property = fc.asyncProperty(
    fc.oneof(fc.array(answers, { minLength: 1, maxLength: 8 }), fc.array(quick, { minLength: 1, maxLength: 2 })),
    fc.constantFrom(1, 50, 3_000, 20_000, 900_000),
    fc.constantFrom("acquire", "onPending", "semaphore", "tryAcquire"),
    fc.option(fc.constantFrom(0, 5, 700, 5_000)),
    async (replies, maxWaitMs, kind, abortMs) => {
      const service = new ScriptedService();
      const leasedUntil = script(service, replies);
      const controller = new AbortController();
      const { signal } = controller;
      const keeper = service.client({ maxWaitMs });
      const asked: { [kind: string]: () => Promise<ServiceSlot | undefined> } = {
        acquire: () => keeper.acquire({ hostname: "h", signal }),
        onPending: () => keeper.acquire({ hostname: "h", signal, onPending: () => {} }),
        semaphore: () => keeper.semaphore("s", 1).acquire({ signal, timeoutMs: maxWaitMs }),
        tryAcquire: () => keeper.semaphore("s", 1).tryAcquire(),
      };
      let ended: { readonly slot?: ServiceSlot | undefined; readonly error?: unknown } | undefined;
      let endOfHold: number | undefined;
      asked[kind]?.().then(
        (slot) => {
          ended = { slot };
          slot?.signal.addEventListener("abort", () => (endOfHold = performance.now()));
        },
        (error: unknown) => (ended = { error }),
      );
      if (abortMs !== null) setTimeout(() => controller.abort("stopped"), abortMs);
      const longestMs = (kind === "tryAcquire" ? 5_000 : maxWaitMs) + 1_001;
      await vi.advanceTimersByTimeAsync(longestMs);
      expect(ended).toBeDefined();
      const { slot, error } = ended as NonNullable<typeof ended>;
      if (error !== undefined && error !== "stopped") expect(error).toBeInstanceOf(SlotClientError);
      if (error instanceof SlotClientError) seen.errors.add(error.code);
      if (slot) {
        seen.slots++;
        expect([slot.guarded, slot.token.length >= 22, slot.fence >= 1]).toEqual([true, true, true]);
        await vi.advanceTimersByTimeAsync(10_000);
        expect(endOfHold ?? performance.now()).toBeLessThanOrEqual(leasedUntil());
        await Promise.race([slot.release(), vi.advanceTimersByTimeAsync(2_000)]);
        expect([slot.released, keeper.stats().held]).toEqual([true, 0]);
      }
      expectNoStorm(service);
      await vi.advanceTimersByTimeAsync(60_000);
      expect(keeper.stats()).toEqual({ held: 0, unguarded: 0 });
      vi.clearAllTimers();
    },
  );
  await fc.assert(property, { numRuns: RUNS });
  expect(seen.slots).toBeGreaterThan(0);
  expect([...seen.errors]).toEqual(expect.arrayContaining(["UNAVAILABLE", "ACQUIRE_TIMEOUT", "REFUSED"]));
}, 600_000);
