/**
 * Applies random steps to a `SlotPool` or `KeyedSemaphore` and to the naive pool, and compares them. Several steps happen
 * in one turn, with sweeps in between: a key with two gates would exceed its limit. Times are chosen as in
 * `semaphore.prop.test.ts`.
 */
import { deepStrictEqual as same } from "node:assert/strict";
import { getEventListeners } from "node:events";
import * as fc from "fast-check";
import { KeyedSemaphore, type Slot, SlotPool } from "slotkeeper";
import { FakeClock, LeakGuard, settled } from "slotkeeper/testing";
import { describe, test } from "vitest";
import { Attempt, aborted } from "./fate.ts";
import { patience, runs } from "./long-mode.ts";
import { NaivePool, type NaivePoolOptions } from "./naive-pool.ts";

const keys = ["a", "b", "", undefined, Number.NaN] as const;
type Key = (typeof keys)[number];
const key = fc.constantFrom<Key>("a", "a", ...keys);
const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("acquire" as const),
      key,
      seconds: fc.constantFrom(Infinity, Infinity, 0, 1, 3),
      signal: fc.constantFrom(undefined, undefined, 0, 1),
      plain: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("tryAcquire" as const), key }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant("release" as const), index: fc.nat(20) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("abort" as const), signal: fc.nat(1) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("advance" as const), seconds: fc.nat(4) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("sweep" as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("resize" as const),
      max: fc.constantFrom(undefined, 0, 1, 3),
      maxPerKey: fc.constantFrom(undefined, 1, 2),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("turn" as const) }) },
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;
const limit = fc.constantFrom(1, 2, 3, Infinity);
const base = {
  ttlMs: fc.constantFrom(Infinity, 500, 2_500),
  maxWaiters: fc.constantFrom(Infinity, Infinity, 1),
  closesAt: fc.option(fc.nat(60), { nil: undefined }),
};

class Life {
  readonly clock: FakeClock;
  readonly guard: LeakGuard;
  readonly controllers = [new AbortController(), new AbortController()];
  readonly attempts: Attempt[] = [];
  readonly grants: number[] = [];
  readonly real: SlotPool<Key> | KeyedSemaphore<Key>;
  readonly naive: NaivePool<Key>;

  constructor(clock: FakeClock, real: SlotPool<Key> | KeyedSemaphore<Key>, options: NaivePoolOptions) {
    this.clock = clock;
    this.guard = new LeakGuard(clock);
    this.real = this.guard.track(real);
    this.naive = new NaivePool(options, clock.now());
  }

  /** Returns a promise for steps that take time. All other steps happen in the same turn. */
  do(step: Step): void | Promise<void> {
    switch (step.do) {
      case "acquire":
        return this.#acquire(step);
      case "tryAcquire":
        return this.#tryAcquire(step.key);
      case "release":
        return this.#release(step.index);
      case "abort":
        this.controllers[step.signal]?.abort(aborted);
        this.controllers[step.signal] = new AbortController();
        return this.naive.abort(step.signal);
      case "advance":
        this.naive.advance(step.seconds * 1_000);
        return this.clock.advanceAsync(step.seconds * 1_000);
      case "turn":
        return;
      case "sweep":
        return same(this.real.sweep(0), this.naive.sweep());
      case "resize":
        return this.#resize(step);
    }
  }

  /** A keyed semaphore has no common limit. In a pool without a limit per key, the limit per key stays as it is. */
  #resize({ max, maxPerKey }: Extract<Step, { do: "resize" }>): void {
    if (!(this.real instanceof SlotPool)) {
      this.real.resize({ maxPerKey });
      this.naive.resize(undefined, maxPerKey);
    } else {
      const perKey = this.real.stats().maxPerKey < Infinity ? maxPerKey : undefined;
      this.real.resize({ max, maxPerKey: perKey });
      this.naive.resize(max === 0 ? Infinity : max, perKey);
    }
  }

  /** A pool with a limit per key refuses calls without a key; `slot-pool.test.ts` checks that. */
  #isRefused(key: Key): boolean {
    return key === undefined && this.real instanceof SlotPool && this.real.stats().maxPerKey < Infinity;
  }

  #acquire({ key, seconds, signal, plain }: Extract<Step, { do: "acquire" }>): void {
    if (this.#isRefused(key)) return;
    const id = this.attempts.length;
    const timeoutMs = seconds === 0 ? 0 : seconds * 1_000 + id + 1;
    const isPlain = plain && seconds === Infinity && signal === undefined;
    const options = { timeoutMs, signal: signal === undefined ? undefined : this.controllers[signal]?.signal };
    this.attempts.push(new Attempt(id, this.real.acquire(key, isPlain ? undefined : options), this.grants));
    this.naive.acquire(id, key, timeoutMs, signal);
    // A sweep before the caller resumes must not drop the key.
    this.real.sweep(0);
    this.naive.sweep();
  }

  #tryAcquire(key: Key): void {
    if (this.#isRefused(key)) return;
    const id = this.attempts.length;
    const slot: Slot | undefined = this.real.tryAcquire(key);
    this.attempts.push(new Attempt(id, Promise.resolve(slot), this.grants));
    this.naive.tryAcquire(id, key);
  }

  #release(index: number): void {
    const attempt = this.attempts[index];
    if (attempt?.slot !== undefined) same(attempt.release(), this.naive.release(attempt.id));
  }

  compareNow(): void {
    const { real, naive } = this;
    const { inUse, waiting, keys, acquired, released, expired, timedOut, aborted, rejected } = real.stats();
    same({ acquired, released, expired, timedOut, aborted, rejected }, naive.counters);
    same([inUse, waiting, keys], [naive.inUse, naive.waiting, naive.size]);
    same([real.inUse, real.waiting, real.size], [inUse, waiting, keys]);
    for (const [signal, controller] of this.controllers.entries()) {
      same(getEventListeners(controller.signal, "abort").length, naive.isAwaited(signal) ? 1 : 0);
    }
  }

  async compare(): Promise<void> {
    const { naive } = this;
    await settled(16);
    this.real.sweep(0);
    this.naive.sweep();
    this.compareNow();
    same(
      this.attempts.map(({ fate }) => fate),
      this.attempts.map(({ id }) => naive.fates.get(id)),
    );
    // Waiters resume in the turn of their grant. Those that waited in two stages resume a little later.
    same(new Set(this.grants.splice(0)), new Set(naive.grants.splice(0)));
  }

  async end(): Promise<void> {
    this.close();
    await this.compare();
    for (const { id } of this.attempts) this.#release(id);
    await this.compare();
    same([this.real.inUse, this.real.waiting, this.real.size, this.clock.pending], [0, 0, 0, 0]);
    this.guard.check();
  }

  close(): void {
    this.real.close();
    this.naive.close();
  }
}

/** Whether the naive pool is exact directly after the step. After other steps it is exact at the end of the turn. */
function isWholeAtOnce(step: Step): boolean {
  return step.do === "tryAcquire" || step.do === "release" || (step.do === "acquire" && step.seconds > 0);
}

async function live(life: Life, steps: Step[], closesAt: number | undefined): Promise<void> {
  for (const [at, one] of steps.entries()) {
    if (at === closesAt) {
      life.close();
      await settled(16);
    }
    const taken = life.do(one);
    if (taken !== undefined) await taken;
    if (isWholeAtOnce(one)) life.compareNow();
    else await life.compare();
  }
  await life.end();
}

const steps = fc.array(step, { minLength: 5, maxLength: 60, size: "max" });

describe("SlotPool, KeyedSemaphore and the naive pool", () => {
  test("a pool agrees with the naive pool after every step", patience, async () => {
    const property = fc.asyncProperty(fc.record({ ...base, max: limit, maxPerKey: limit }), steps, (options, steps) => {
      const { max, maxPerKey, ttlMs, maxWaiters, closesAt } = options;
      const clock = new FakeClock(1_000_000);
      const limits = { max: max === Infinity ? 0 : max, maxPerKey: maxPerKey === Infinity ? 0 : maxPerKey };
      const pool = new SlotPool<Key>({ ...limits, ttlMs, maxWaiters, clock });
      return live(new Life(clock, pool, { max, maxPerKey, ttlMs, maxWaiters, anyKey: false }), steps, closesAt);
    });
    await fc.assert(property, runs(300));
  });

  test("a keyed semaphore agrees with the naive pool after every step, for keys of any type", patience, async () => {
    const property = fc.asyncProperty(
      fc.record({ ...base, slots: fc.constantFrom(1, 2, 3) }),
      steps,
      (options, steps) => {
        const { slots, ttlMs, maxWaiters, closesAt } = options;
        const clock = new FakeClock(1_000_000);
        const keyed = new KeyedSemaphore<Key>(slots, { ttlMs, maxWaiters, clock });
        const naive = { max: Infinity, maxPerKey: slots, ttlMs, maxWaiters, anyKey: true };
        return live(new Life(clock, keyed, naive), steps, closesAt);
      },
    );
    await fc.assert(property, runs(200));
  });
});
