/**
 * Every operation is run once to count its steps (turns of the microtask queue), then aborted at step 0, 1, … N. After an
 * abort at any step, either the caller has the slot or the slot is free.
 */
import type { Slot } from "slotkeeper";
import { settled } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { type Outcome, outcome } from "./outcome.ts";
import { useWorld } from "./world.ts";

const world = useWorld();
const reason = new Error("abort at a step");

/** The operations that a semaphore of one slot and a pool have in common. */
interface Subject {
  acquire(options?: { signal?: AbortSignal | undefined }): Promise<Slot>;
  run(work: (slot: Slot) => unknown, options?: { signal?: AbortSignal | undefined }): Promise<unknown>;
  /** Makes the next operation wait. Returns a function that lets it continue. */
  block(): () => void;
  readonly inUse: number;
  readonly waiting: number;
  close(): void;
}

function semaphore(): Subject {
  const sem = world().semaphore(1);
  return Object.assign(sem, {
    block: () => {
      const held = sem.tryAcquire();
      return () => void held?.release();
    },
  });
}

/** `stages`: the stages in which the operation has to wait. */
function pool(stages: "no" | "key" | "global" | "both"): Subject {
  const inner = world().pool({ max: stages === "key" ? 2 : 1, maxPerKey: 1 });
  const key = stages === "global" ? "other" : "mine";
  return {
    acquire: (options) => inner.acquire("mine", options),
    run: (work, options) => inner.run("mine", work, options),
    block: () => {
      const held = inner.tryAcquire(key);
      return () => void held?.release();
    },
    get inUse() {
      return inner.inUse;
    },
    get waiting() {
      return inner.waiting;
    },
    close: () => inner.close(),
  };
}

const subjects: [string, () => Subject][] = [
  ["a semaphore", semaphore],
  ["a pool, waiting for the key", () => pool("key")],
  ["a pool, waiting for the global limit", () => pool("global")],
  ["a pool, waiting for both", () => pool("both")],
];

async function work(): Promise<void> {
  await Promise.resolve();
  await Promise.resolve();
}

/** The number of microtask turns until the promise settles. */
async function countSteps(promise: Promise<unknown>): Promise<number> {
  const watched = outcome(promise);
  let steps = 0;
  for (; watched.status === "pending"; steps++) await Promise.resolve();
  return steps;
}

/** Checks that the caller has the slot or the slot is free, and that a free slot can be acquired exactly once. */
async function expectNoLeak(subject: Subject, slot: Slot | undefined): Promise<void> {
  expect(subject.inUse).toBe(slot === undefined ? 0 : 1);
  expect(subject.waiting).toBe(0);
  slot?.release();
  expect(subject.inUse).toBe(0);
  const again = await subject.acquire();
  const second = outcome(subject.acquire());
  await settled();
  expect([subject.inUse, second.status]).toEqual([1, "pending"]);
  again.release();
  await settled();
  second.value.release();
  expect(subject.inUse).toBe(0);
  subject.close();
}

type Path = "immediate" | "queued" | "handed over";
const paths: Path[] = ["immediate", "queued", "handed over"];

/** Starts an operation on that path and aborts it after that number of turns; returns its outcome. */
async function abortAt<T>(
  subject: Subject,
  path: Path,
  step: number,
  start: (signal: AbortSignal) => Promise<T>,
): Promise<Outcome<T>> {
  const controller = new AbortController();
  const unblock = path === "immediate" ? () => {} : subject.block();
  const result = outcome(start(controller.signal));
  if (path === "handed over") {
    await settled();
    unblock();
  }
  for (let turn = 0; turn < step; turn++) await Promise.resolve();
  controller.abort(reason);
  await settled();
  unblock();
  await settled();
  return result;
}

async function stepsOf(
  make: () => Subject,
  path: Path,
  start: (subject: Subject) => Promise<unknown>,
): Promise<number> {
  const subject = make();
  const unblock = path === "immediate" ? () => {} : subject.block();
  const running = start(subject);
  if (path !== "immediate") await settled();
  unblock();
  const steps = await countSteps(running);
  const got = await running;
  (got as Slot | undefined)?.release?.();
  subject.close();
  return steps;
}

describe.each(subjects)("abort at every step of %s", (_, make) => {
  test.each(paths)("acquire, %s: no slot leaks and none is granted twice", async (path) => {
    const steps = await stepsOf(make, path, (subject) => subject.acquire({ signal: new AbortController().signal }));
    expect(steps).toBeGreaterThan(0);
    for (let step = 0; step <= steps + 2; step++) {
      const subject = make();
      const result = await abortAt(subject, path, step, (signal) => subject.acquire({ signal }));
      expect(result.status, `step ${step}`).not.toBe("pending");
      if (result.status === "rejected") expect(result.reason).toBe(reason);
      await expectNoLeak(subject, result.status === "fulfilled" ? result.value : undefined);
    }
  });

  test.each(paths)("run, %s: no slot leaks, and work runs to its end or never starts", async (path) => {
    const steps = await stepsOf(make, path, (subject) => subject.run(work, { signal: new AbortController().signal }));
    for (let step = 0; step <= steps + 2; step++) {
      const subject = make();
      let started = 0;
      let ended = 0;
      const result = await abortAt(subject, path, step, (signal) =>
        subject.run(
          async () => {
            started++;
            expect(signal.aborted).toBe(false);
            await work();
            ended++;
          },
          { signal },
        ),
      );
      expect([started, ended], `step ${step}`).toEqual(result.status === "fulfilled" ? [1, 1] : [0, 0]);
      if (result.status === "rejected") expect(result.reason).toBe(reason);
      await expectNoLeak(subject, undefined);
    }
  });

  test("an abort at any step of a hand-over: exactly one of two waiters gets the slot", async () => {
    const steps = await stepsOf(make, "handed over", (subject) => subject.acquire());
    for (let step = 0; step <= steps + 2; step++) {
      const subject = make();
      const controller = new AbortController();
      const unblock = subject.block();
      const waiters = [outcome(subject.acquire({ signal: controller.signal })), outcome(subject.acquire())];
      await settled();
      unblock();
      for (let turn = 0; turn < step; turn++) await Promise.resolve();
      controller.abort(reason);
      await settled();
      const holders = waiters.filter(({ status }) => status === "fulfilled");
      expect([holders.length, subject.inUse], `step ${step}`).toEqual([1, 1]);
      for (const waiter of waiters) {
        await settled();
        if (waiter.status === "fulfilled") waiter.value.release();
      }
      await expectNoLeak(subject, undefined);
    }
  });
});

describe("close at every step", () => {
  test.each(subjects)("of an acquire on %s: no slot leaks", async (_, make) => {
    for (const path of paths) {
      for (let step = 0; step <= 12; step++) {
        const subject = make();
        const unblock = path === "immediate" ? () => {} : subject.block();
        const result = outcome(subject.acquire({ signal: new AbortController().signal }));
        if (path === "handed over") {
          await settled();
          unblock();
        }
        for (let turn = 0; turn < step; turn++) await Promise.resolve();
        subject.close();
        await settled();
        unblock();
        if (result.status === "fulfilled") result.value.release();
        else expect(result.reason).toMatchObject({ code: "CLOSED" });
        expect([subject.inUse, subject.waiting], `${path} step ${step}`).toEqual([0, 0]);
      }
    }
  });
});

describe("expiry at every step", () => {
  test("of a hand-over with a ttl: the slot is taken back even if its new holder has not resumed yet", async () => {
    for (let step = 0; step <= 12; step++) {
      for (const stage of ["semaphore", "pool"]) {
        const { clock } = world();
        const sem = world().semaphore(1, { ttlMs: 10 });
        const pool = world().pool({ max: 1, maxPerKey: 1, ttlMs: 10 });
        const acquire = () => (stage === "pool" ? pool.acquire("a") : sem.acquire());
        const held = await acquire();
        const next = outcome(acquire());
        held.release();
        for (let turn = 0; turn < step; turn++) await Promise.resolve();
        clock.advance(10);
        await clock.advanceAsync(10);
        expect(next.value.released).toBe(true);
        expect([sem.inUse, pool.inUse, pool.waiting]).toEqual([0, 0, 0]);
        pool.close();
        expect(pool.size).toBe(0);
      }
    }
  });
});
