/**
 * Random lives of a limiter against the naive model, and the bounds of its budgets over whatever was granted. After each
 * step: who holds, who waits, who was granted when, what is left of the budgets, and how many timers are set.
 */
import { ok, deepStrictEqual as same } from "node:assert/strict";
import * as fc from "fast-check";
import { Limiter, type LimiterSlot } from "slotkeeper/limiter";
import { FakeClock, LeakGuard, settled } from "slotkeeper/testing";
import { describe, test } from "vitest";
import { patience, runs } from "../long-mode.ts";
import { type NaiveBudget, NaiveLimiter, type NaiveOptions } from "./naive-limiter.ts";

const index = fc.nat(30);
const cost = fc.constantFrom(undefined, 0, 1, 1, 2, 3);
const key = fc.constantFrom(undefined, "a", "a", "b", "c");
const step = fc.oneof(
  {
    weight: 9,
    arbitrary: fc.record({
      do: fc.constant("acquire" as const),
      key,
      costs: fc.tuple(cost, cost),
      level: fc.nat(2),
      timeoutMs: fc.constantFrom(Infinity, Infinity, Infinity, 0, 7, 30),
      signal: fc.constantFrom(undefined, undefined, 0, 1),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("tryAcquire" as const),
      key,
      costs: fc.tuple(cost, cost),
      level: fc.nat(2),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant("release" as const), index, retryAfterMs: fc.constantFrom(0, 0, 0, 12) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("settle" as const),
      index,
      costs: fc.tuple(fc.constantFrom(undefined, 0, 1, 5), cost),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("abort" as const), signal: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("clear" as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("pause" as const), isPaused: fc.boolean() }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("learn" as const),
      remaining: fc.nat(3),
      resetMs: fc.integer({ min: 1, max: 30 }),
    }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constant("advance" as const), ms: fc.nat(40) }) },
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

const budget: fc.Arbitrary<NaiveBudget> = fc
  .record({
    limit: fc.constantFrom(3, 4, 10),
    perMs: fc.constantFrom(10, 20, 60),
    extra: fc.constantFrom(0, 0, 5),
    strict: fc.boolean(),
  })
  .map(({ limit, perMs, extra, strict }) => ({ limit, perMs, burst: strict ? limit : limit + extra, strict }));

const setup = fc.record({
  slots: fc.constantFrom(1, 2, 3, Infinity),
  budgets: fc.array(budget, { maxLength: 2 }),
  perKey: fc.option(
    fc.record({ slots: fc.constantFrom(1, 2, Infinity), budgets: fc.array(budget, { maxLength: 2 }) }),
    { nil: undefined },
  ),
  ageAfterMs: fc.constantFrom(Infinity, 10, 25),
  ttlMs: fc.constantFrom(Infinity, Infinity, 20.5),
  maxWaiters: fc.constantFrom(Infinity, Infinity, 3),
});

const names = ["requests", "tokens"];
const aborted = new Error("aborted by the test");
const fateOfCode: Record<string, string> = { ACQUIRE_TIMEOUT: "timed out", QUEUE_FULL: "queue full" };

const budgetsOf = (budgets: readonly NaiveBudget[]) =>
  Object.fromEntries(
    budgets.map(({ limit, perMs, burst, strict }, at) => [
      names[at],
      { limit, perMs, default: 1, ...(strict ? { strict } : { burst }) },
    ]),
  );

class Life {
  readonly clock = new FakeClock(1_000);
  readonly guard = new LeakGuard(this.clock);
  readonly controllers = [new AbortController(), new AbortController()];
  readonly real: Limiter;
  readonly naive: NaiveLimiter;
  readonly options: NaiveOptions;
  readonly slots = new Map<number, LimiterSlot>();
  readonly fates = new Map<number, string>();
  readonly grants: { id: number; at: number }[] = [];
  /** What was charged when, net of refunds, by budget. */
  readonly charges: { id: number; at: number; costs: number[] }[] = [];
  readonly deadlines = new Set<number>();
  asked = 0;

  constructor(given: typeof setup extends fc.Arbitrary<infer S> ? S : never) {
    // Two slots that expire at the same instant would do so in an order that the specification leaves open.
    this.options = { ...given, slots: given.ttlMs < Infinity ? 1 : given.slots, levels: 3 };
    const { slots, budgets, perKey, ageAfterMs, ttlMs, maxWaiters, levels } = this.options;
    this.real = this.guard.track(
      new Limiter({
        slots,
        budgets: budgetsOf(budgets),
        perKey: perKey && { slots: perKey.slots, budgets: budgetsOf(perKey.budgets) },
        ageAfterMs,
        ttlMs,
        maxWaiters,
        levels,
        clock: this.clock,
      }),
    );
    this.naive = new NaiveLimiter(this.options, this.clock.now());
  }

  do(step: Step): void {
    const { real, naive } = this;
    switch (step.do) {
      case "acquire":
        return this.#acquire(step);
      case "tryAcquire":
        return this.#tryAcquire(step);
      case "release": {
        const slot = this.slots.get(step.index);
        if (slot === undefined) return;
        const { retryAfterMs } = step;
        const outcome = retryAfterMs ? ({ outcome: "overload", retryAfterMs } as const) : undefined;
        const isReleased = slot.release(outcome);
        if (isReleased) this.fates.set(step.index, "released");
        return same(isReleased, naive.release(step.index, retryAfterMs));
      }
      case "settle":
        return this.#settle(step.index, step.costs);
      case "abort":
        this.controllers[step.signal]?.abort(aborted);
        this.controllers[step.signal] = new AbortController();
        return naive.abort(step.signal);
      case "clear":
        real.clear(aborted);
        return naive.clear();
      case "pause":
        if (step.isPaused) real.pause();
        else real.resume();
        return naive.pause(step.isPaused);
      case "learn":
        if (this.options.budgets.length === 0) return;
        real.learn("requests", { remaining: step.remaining, resetMs: step.resetMs });
        return naive.learn(0, step.remaining, step.resetMs);
      case "advance":
        this.clock.advance(step.ms);
        return naive.advance(step.ms);
    }
  }

  #costsOf(costs: readonly (number | undefined)[]): { given: Record<string, number>; all: number[] } {
    const { budgets, perKey } = this.options;
    const known = names.filter((_, at) => budgets[at] ?? perKey?.budgets[at]);
    const entries = known.flatMap((name, at) => (costs[at] === undefined ? [] : [[name, costs[at]]]));
    return { given: Object.fromEntries(entries), all: known.map((_, at) => costs[at] ?? 1) };
  }

  /** A limiter without `perKey` refuses keys; `grants.test.ts` checks that. */
  #keyOf<K>(key: K): K | undefined {
    return this.options.perKey === undefined ? undefined : key;
  }

  #acquire({ key: anyKey, costs, level, timeoutMs: atLeast, signal }: Extract<Step, { do: "acquire" }>): void {
    const key = this.#keyOf(anyKey);
    const id = this.asked++;
    let timeoutMs = atLeast;
    // No two timeouts at one instant: the order of those is left open, too.
    while (timeoutMs > 0 && timeoutMs < Infinity && this.deadlines.has(this.clock.now() + timeoutMs)) timeoutMs++;
    this.deadlines.add(this.clock.now() + timeoutMs);
    const { given: cost, all } = this.#costsOf(costs);
    const promise = this.real.acquire({
      key,
      cost,
      level,
      timeoutMs,
      signal: signal === undefined ? undefined : this.controllers[signal]?.signal,
    });
    this.fates.set(id, "waiting");
    promise.then(
      (slot) => this.#granted(id, slot, all),
      (error: { code?: string }) => {
        this.fates.set(id, error === aborted ? "aborted" : (fateOfCode[error.code ?? ""] ?? String(error)));
      },
    );
    this.naive.acquire({ id, key, costs: all, level, signal, timeoutAt: this.clock.now() + timeoutMs });
  }

  #tryAcquire({ key: anyKey, costs, level }: Extract<Step, { do: "tryAcquire" }>): void {
    const key = this.#keyOf(anyKey);
    const id = this.asked++;
    const { given: cost, all } = this.#costsOf(costs);
    const slot = this.real.tryAcquire({ key, cost, level });
    if (slot) this.#granted(id, slot, all);
    else this.fates.set(id, "never");
    this.naive.tryAcquire({ id, key, costs: all, level });
  }

  #granted(id: number, slot: LimiterSlot, costs: number[]): void {
    this.slots.set(id, slot);
    this.fates.set(id, "held");
    // The model's time is that of the grant; the promise settles later.
    const at = this.naive.grants.find((grant) => grant.id === id)?.at ?? this.clock.now();
    this.grants.push({ id, at });
    this.charges.push({ id, at, costs: [...costs] });
  }

  #settle(id: number, costs: readonly (number | undefined)[]): void {
    const slot = this.slots.get(id);
    if (slot === undefined) return;
    const { given } = this.#costsOf(costs);
    const actual = names.map((name) => given[name]);
    const isSettled = slot.settle(given);
    same(isSettled, this.naive.settle(id, actual));
    const charge = this.charges.find((one) => one.id === id);
    if (isSettled && charge) {
      // Debt is charged, not granted: only refunds count.
      charge.costs = charge.costs.map((one, at) => Math.min(one, actual[at] ?? one));
    }
  }

  async compare(): Promise<void> {
    const { real, naive } = this;
    same([real.inUse, real.waiting, real.paused], [naive.holders.length, naive.queue.length, naive.isPaused]);
    ok(this.clock.pending <= 1, "one timer at most");
    if (real.waiting === 0 && this.options.ttlMs === Infinity) same(this.clock.pending, 0);
    same(this.clock.keepingAlive, real.waiting > 0 ? this.clock.pending : 0);
    await settled(6);
    for (const [id, slot] of this.slots) {
      if (slot.released && this.fates.get(id) === "held") this.fates.set(id, "expired");
    }
    same(this.fates, naive.fates);
    same(
      this.grants.map(({ id }) => id).sort((a, b) => a - b),
      naive.grants.map(({ id }) => id).sort((a, b) => a - b),
    );
    for (const at of this.options.budgets.keys()) {
      const available = Object.values(real.stats().budgets)[at]?.available ?? Number.NaN;
      ok(Math.abs(available - (naive.availableOf(at) ?? 0)) < 1e-6, `${available} of ${naive.availableOf(at)}`);
    }
  }

  /** In every interval between two grants, what was granted is within the bound. */
  checkBounds(): void {
    for (const [at, { limit, perMs, burst, strict }] of this.options.budgets.entries()) {
      const { charges } = this;
      for (const from of charges) {
        for (const to of charges) {
          const lengthMs = to.at - from.at;
          if (lengthMs < 0 || (strict && lengthMs >= perMs)) continue;
          const between = charges.filter((one) => one.at >= from.at && one.at <= to.at);
          const granted = between.reduce((sum, { costs }) => sum + (costs[at] ?? 0), 0);
          const most = strict ? limit : burst + (limit * lengthMs) / perMs;
          ok(granted <= most + 1e-6, `${granted} granted in ${lengthMs} ms, at most ${most}`);
        }
      }
    }
  }

  /** Ends everything; nothing may be left. */
  async end(): Promise<void> {
    this.real.resume();
    this.real.close();
    await settled();
    for (const slot of this.slots.values()) slot.release();
    this.guard.check();
    this.clock.advance(10_000);
    this.real.sweep();
    same(this.real.size, 0);
    await this.real.idle();
  }
}

describe("random lives of a limiter", () => {
  test("are those of the naive model, keep within the bounds, and leave nothing", patience, async () => {
    await fc.assert(
      fc.asyncProperty(setup, fc.array(step, { maxLength: 60, size: "max" }), async (given, steps) => {
        const life = new Life(given);
        for (const one of steps) {
          life.do(one);
          await life.compare();
        }
        life.checkBounds();
        await life.end();
      }),
      runs(400),
    );
  });
});
