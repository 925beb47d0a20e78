/**
 * Compares many instances of one name with one naive semaphore. Sweeps, drops and new instances happen at any time, and
 * all instances must still share their slots.
 */
import { deepStrictEqual as same } from "node:assert/strict";
import * as fc from "fast-check";
import { Semaphore, SemaphoreRegistry } from "slotkeeper";
import { FakeClock, LeakGuard, settled } from "slotkeeper/testing";
import { describe, test } from "vitest";
import { Attempt, aborted } from "./fate.ts";
import { patience, runs } from "./long-mode.ts";
import { NaiveSemaphore } from "./naive-semaphore.ts";

const instance = fc.nat(3);
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("acquire" as const),
      instance,
      seconds: fc.constantFrom(Infinity, 0, 1),
      signal: fc.constantFrom(undefined, 0),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("tryAcquire" as const), instance }) },
  { weight: 8, arbitrary: fc.record({ do: fc.constant("release" as const), index: fc.nat(20) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("releaseById" as const), instance, index: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("abort" as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("newInstance" as const), instance }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("sweepAfter" as const), seconds: fc.constantFrom(0, 1, 60) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("otherName" as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("resize" as const), instance, capacity: fc.integer({ min: 1, max: 3 }) }),
  },
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

class Life {
  readonly clock = new FakeClock(1_000_000);
  readonly guard = new LeakGuard(this.clock);
  readonly registry = new SemaphoreRegistry({ clock: this.clock });
  controller = new AbortController();
  readonly attempts: Attempt[] = [];
  readonly grants: number[] = [];
  others = 0;
  readonly naive = new NaiveSemaphore(2, { ttlMs: Infinity, maxWaiters: Infinity }, this.clock.now());
  readonly instances = Array.from({ length: 4 }, () => this.open());

  open(): Semaphore {
    const { clock, registry } = this;
    return this.guard.track(new Semaphore(this.naive?.capacity ?? 2, { name: "shared", registry, clock }));
  }

  at(instance: number): Semaphore {
    return this.instances[instance] as Semaphore;
  }

  do(step: Step): void {
    const id = this.attempts.length;
    switch (step.do) {
      case "acquire": {
        const timeoutMs = step.seconds === 0 ? 0 : step.seconds * 1_000 + id + 1;
        const signal = step.signal === undefined ? undefined : this.controller.signal;
        this.attempts.push(new Attempt(id, this.at(step.instance).acquire({ timeoutMs, signal }), this.grants));
        return this.naive.acquire(id, 1, timeoutMs, step.signal);
      }
      case "tryAcquire":
        this.attempts.push(new Attempt(id, Promise.resolve(this.at(step.instance).tryAcquire()), this.grants));
        return this.naive.tryAcquire(id, 1);
      case "release":
        return this.#release(step.index, (attempt) => attempt.release());
      case "releaseById":
        return this.#release(step.index, (attempt) => {
          const released = this.at(step.instance).release(attempt.slot?.id ?? "");
          if (released) attempt.noteReleased();
          return released;
        });
      case "abort":
        this.controller.abort(aborted);
        this.controller = new AbortController();
        return this.naive.abort(0);
      case "newInstance":
        this.instances[step.instance] = this.open();
        return;
      case "sweepAfter":
        return this.#sweepAfter(step.seconds * 1_000);
      case "otherName":
        this.guard.track(new Semaphore(1, { name: `other ${this.others++}`, registry: this.registry }));
        return;
      case "resize":
        this.at(step.instance).resize(step.capacity);
        return this.naive.resize(step.capacity);
    }
  }

  #release(index: number, release: (attempt: Attempt) => boolean | undefined): void {
    const attempt = this.attempts[index];
    if (attempt?.slot !== undefined) same(release(attempt), this.naive.release(attempt.id));
  }

  /** A name in use is never dropped. A dropped name gets the capacity of the next caller, so capacity is not compared. */
  #sweepAfter(ms: number): void {
    this.clock.advance(ms);
    this.naive.advance(ms);
    this.registry.sweep();
    const isKnown = this.registry.stats({ names: ["shared"] }).length === 1;
    if (this.naive.inUse > 0) same(isKnown, true);
    else if (ms === 60_000) same(isKnown, false);
  }

  compare(): void {
    const { inUse, queue, counters } = this.naive;
    for (const sem of this.instances) same([sem.inUse, sem.waiting], [inUse, queue.length]);
    const { acquired, released } = this.at(0).stats();
    for (const sem of this.instances) same([sem.stats().acquired, sem.stats().released], [acquired, released]);
    same(acquired - released, counters.acquired - counters.released);
  }

  async turn(): Promise<void> {
    await settled(8);
    same(
      this.attempts.map(({ fate }) => fate),
      this.attempts.map(({ id }) => this.naive.fates.get(id)),
    );
    same(this.grants, this.naive.grants);
  }

  async end(): Promise<void> {
    this.at(0).close();
    this.naive.close();
    await this.turn();
    for (const { id } of this.attempts) this.#release(id, (attempt) => attempt.release());
    await this.turn();
    same(this.registry.stats({ names: ["shared"] }), []);
    this.guard.check();
  }
}

describe("instances of one name", () => {
  test("share their slots through sweeps, drops and new instances", patience, async () => {
    const property = fc.asyncProperty(
      fc.array(step, { minLength: 5, maxLength: 60, size: "max" }),
      fc.boolean(),
      async (steps, looks) => {
        const life = new Life();
        for (const one of steps) {
          // `compare` uses every instance. Without it, some instances keep a gate that was dropped.
          if (one.do === "resize" && !looks) continue;
          life.do(one);
          if (looks) life.compare();
          await life.turn();
        }
        life.compare();
        await life.end();
      },
    );
    await fc.assert(property, runs(300));
  });
});
