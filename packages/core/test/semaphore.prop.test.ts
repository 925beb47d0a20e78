/**
 * Applies random steps to a semaphore and to the naive model, and compares them. After each step, in the same turn: all
 * counters and getters. After each turn: the holders, the waiters, the order of grants, and the outcome of every acquire.
 *
 * The specification does not define the order of things that fall due at the same time, so that must not happen. Steps
 * happen at whole seconds, the n-th acquire times out n ms after a whole second, and slots expire half a second after that.
 */
import { ok, deepStrictEqual as same } from "node:assert/strict";
import { getEventListeners } from "node:events";
import * as fc from "fast-check";
import { Semaphore, type SemaphoreEvent, type Slot } from "slotkeeper";
import { FakeClock, LeakGuard, settled } from "slotkeeper/testing";
import { describe, test } from "vitest";
import { Attempt, aborted } from "./fate.ts";
import { patience, runs } from "./long-mode.ts";
import { NaiveSemaphore } from "./naive-semaphore.ts";

const index = fc.nat(20);
const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("acquire" as const),
      width: fc.constantFrom(1, 1, 1, 2, 3),
      seconds: fc.constantFrom(Infinity, Infinity, 0, 1, 3),
      signal: fc.constantFrom(undefined, undefined, 0, 1),
      plain: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("tryAcquire" as const), width: fc.constantFrom(1, 1, 2) }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant("release" as const), index }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("releaseById" as const), index }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant("renew" as const), index, seconds: fc.constantFrom(undefined, 0, 2, 5) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("abort" as const), signal: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("resize" as const), capacity: fc.integer({ min: 1, max: 4 }) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("advance" as const), seconds: fc.nat(4) }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant("turn" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("readNumber" as const), index }) },
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

const setup = fc.record({
  capacity: fc.integer({ min: 1, max: 3 }),
  ttlMs: fc.constantFrom(Infinity, Infinity, 500, 2_500),
  maxWaiters: fc.constantFrom(Infinity, Infinity, 2, 0),
  listens: fc.boolean(),
  closesAt: fc.option(fc.nat(60), { nil: undefined }),
});

class Life {
  readonly clock = new FakeClock(1_000_000);
  readonly guard = new LeakGuard(this.clock);
  readonly events: SemaphoreEvent[] = [];
  readonly controllers = [new AbortController(), new AbortController()];
  readonly attempts: Attempt[] = [];
  readonly grants: number[] = [];
  readonly numbers = new Map<Slot, number>();
  hasShrunk = false;
  readonly real: Semaphore;
  readonly naive: NaiveSemaphore;

  constructor({ capacity, ttlMs, maxWaiters, listens }: typeof setup extends fc.Arbitrary<infer S> ? S : never) {
    const onEvent = listens ? (event: SemaphoreEvent) => void this.events.push(event) : undefined;
    this.real = this.guard.track(new Semaphore(capacity, { ttlMs, maxWaiters, clock: this.clock, onEvent }));
    this.naive = new NaiveSemaphore(capacity, { ttlMs, maxWaiters }, this.clock.now());
  }

  do(step: Step): void | Promise<void> {
    switch (step.do) {
      case "acquire":
        return this.#acquire(step);
      case "tryAcquire":
        return this.#tryAcquire(step.width);
      case "release":
        return this.#release(step.index, (attempt) => attempt.release());
      case "releaseById":
        return this.#release(step.index, (attempt) => {
          const released = this.real.release(attempt.slot?.id ?? "");
          if (released) attempt.noteReleased();
          return released;
        });
      case "renew":
        return this.#renew(step.index, step.seconds === undefined ? undefined : step.seconds * 1_000 + 500);
      case "abort":
        this.controllers[step.signal]?.abort(aborted);
        this.controllers[step.signal] = new AbortController();
        return this.naive.abort(step.signal);
      case "resize":
        this.hasShrunk ||= step.capacity < this.real.capacity;
        this.real.resize(step.capacity);
        return this.naive.resize(step.capacity);
      case "advance":
        this.clock.advance(step.seconds * 1_000);
        return this.naive.advance(step.seconds * 1_000);
      case "turn":
        return this.turn();
      case "readNumber":
        return this.#readNumber(step.index);
    }
  }

  #acquire({ width, seconds, signal, plain }: Extract<Step, { do: "acquire" }>): void {
    const id = this.attempts.length;
    const isPlain = plain && width === 1 && seconds === Infinity && signal === undefined;
    const timeoutMs = seconds === 0 ? 0 : seconds * 1_000 + id + 1;
    const options = { width, timeoutMs, signal: signal === undefined ? undefined : this.controllers[signal]?.signal };
    this.attempts.push(new Attempt(id, this.real.acquire(isPlain ? undefined : options), this.grants));
    this.naive.acquire(id, width, timeoutMs, signal);
  }

  #tryAcquire(width: number): void {
    const id = this.attempts.length;
    const promise = new Promise<Slot | undefined>((resolve) => resolve(this.real.tryAcquire({ width })));
    this.attempts.push(new Attempt(id, promise, this.grants));
    this.naive.tryAcquire(id, width);
  }

  #release(index: number, release: (attempt: Attempt) => boolean | undefined): void {
    const attempt = this.attempts[index];
    if (attempt?.slot !== undefined) same(release(attempt), this.naive.release(attempt.id));
  }

  #renew(index: number, ttlMs: number | undefined): void {
    const attempt = this.attempts[index];
    if (attempt?.slot !== undefined) same(attempt.slot.renew(ttlMs), this.naive.renew(attempt.id, ttlMs));
  }

  #readNumber(index: number): void {
    const slot = this.attempts[index]?.slot;
    if (slot !== undefined && !slot.released) this.numbers.set(slot, slot.number);
  }

  /** Compares what must be equal at any time, even in the middle of a turn. */
  compareNow(): void {
    const { real, naive } = this;
    const { capacity, inUse, available, locked, closed, counters } = naive;
    const waiting = naive.queue.length;
    same(
      {
        capacity: real.capacity,
        inUse: real.inUse,
        available: real.available,
        waiting: real.waiting,
        locked: real.locked,
        closed: real.closed,
      },
      { capacity, inUse, available, waiting, locked, closed },
    );
    const percent = (inUse / capacity) * 100;
    same(real.stats(), { name: undefined, capacity, inUse, waiting, percent, ...counters });
    if (!this.hasShrunk) ok(real.inUse <= real.capacity);
    this.#compareListeners();
    this.#compareNumbers();
  }

  #compareListeners(): void {
    for (const [signal, controller] of this.controllers.entries()) {
      const isAwaited = this.naive.queue.some((ask) => ask.signal === signal);
      same(getEventListeners(controller.signal, "abort").length, isAwaited ? 1 : 0);
    }
  }

  #compareNumbers(): void {
    const held = [...this.numbers].filter(([slot]) => !slot.released);
    for (const [slot, number] of held) same(slot.number, number);
    same(new Set(held.map(([, number]) => number)).size, held.length);
    for (const [, number] of held) {
      ok(number >= 1);
      if (!this.hasShrunk) ok(number <= this.real.capacity);
    }
  }

  /** Lets promises settle, then compares the outcomes. */
  async turn(): Promise<void> {
    await settled(8);
    same(
      this.attempts.map(({ fate }) => fate),
      this.attempts.map(({ id }) => this.naive.fates.get(id)),
    );
    same(this.grants, this.naive.grants);
    for (const { id, slot } of this.attempts) {
      const expiresAt = this.naive.holders.find((hold) => hold.id === id)?.expiresAt ?? Infinity;
      if (slot !== undefined) same(slot.expiresAt ?? Infinity, expiresAt);
    }
    // The head of the queue never waits while enough slots for it are free.
    const head = this.naive.queue[0];
    if (head !== undefined) ok(this.real.available < head.width);
  }

  /** Closes the semaphore, releases all slots and checks that nothing is left. */
  async end(): Promise<void> {
    this.close();
    await this.turn();
    for (const attempt of this.attempts) this.#release(attempt.id, (one) => one.release());
    await this.turn();
    this.compareNow();
    await this.real.idle();
    same([this.real.inUse, this.real.waiting, this.clock.pending], [0, 0, 0]);
    this.guard.check();
    this.#compareEvents();
  }

  close(): void {
    this.real.close();
    this.naive.close();
  }

  #compareEvents(): void {
    if (this.events.length === 0) return;
    const count = (type: string) => this.events.filter((event) => event.type === type).length;
    const { acquired, released, expired, timedOut, aborted } = this.naive.counters;
    same(
      [count("acquired"), count("released"), count("expired"), count("timed-out"), count("aborted"), count("closed")],
      [acquired, released, expired, timedOut, aborted, 1],
    );
  }
}

describe("a semaphore and the naive model", () => {
  test("agree after every step", patience, async () => {
    await fc.assert(
      fc.asyncProperty(setup, fc.array(step, { minLength: 5, maxLength: 60, size: "max" }), async (options, steps) => {
        const life = new Life(options);
        for (const [at, one] of steps.entries()) {
          if (at === options.closesAt) life.close();
          await life.do(one);
          life.compareNow();
        }
        await life.end();
      }),
      runs(400),
    );
  });
});
