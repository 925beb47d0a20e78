import {
  acquireSemaphore,
  cancel,
  createPromise,
  createSemaphore,
  DeadlockError,
  delay,
  gather,
  log,
  type Program,
  race,
  releaseSemaphore,
  run,
  type SemaphoreHandle,
  simulate,
  spawn,
  type Task,
  tryCatch,
  wait,
  withSemaphore,
} from "slotkeeper/effects";
import { describe, expect, it } from "vitest";

function deadlockOf(program: () => Program<unknown>): DeadlockError {
  try {
    simulate(program);
  } catch (error) {
    if (error instanceof DeadlockError) return error;
    throw error;
  }
  throw new Error("Expected a deadlock");
}

/** Takes the first, gives the others time, takes the second. */
function* both(first: SemaphoreHandle, second: SemaphoreHandle, pauseMs = 1): Program<void> {
  yield* withSemaphore(first, function* () {
    yield* delay(pauseMs);
    yield* withSemaphore(second, log("both"));
  });
}

describe("a run in which nothing can run", () => {
  it("fails with what every task waits for, when the root waits for a promise that is never settled", () => {
    const error = deadlockOf(function* () {
      const { future } = yield* createPromise<void>();
      const child = yield* spawn(wait(future), { name: "child" });
      yield* wait(child);
    });
    expect(error).toMatchObject({ code: "DEADLOCK", retryable: false, semaphores: [], cycle: undefined });
    expect(error.parked).toEqual([
      { task: { id: 0, name: "root" }, waitsFor: 'task "child" (1)' },
      { task: { id: 1, name: "child" }, waitsFor: "promise 1" },
    ]);
    expect(error.message).toContain('"root" (0) waits for task "child" (1)');
  });

  it("names semaphore, holders and waiters when the root waits for a permit it holds itself", () => {
    const error = deadlockOf(function* () {
      const semaphore = yield* createSemaphore(1, { name: "db" });
      yield* acquireSemaphore(semaphore);
      yield* acquireSemaphore(semaphore);
    });
    const root = { id: 0, name: "root" };
    expect(error.semaphores).toEqual([
      {
        id: 1,
        name: "db",
        permits: 1,
        available: 0,
        holders: [{ task: root, permits: 1, hasEnded: false }],
        waiters: [root],
      },
    ]);
    expect(error.cycle).toEqual([{ task: root, waitsFor: 'semaphore 1 "db"' }]);
    expect(error.message).toContain('semaphore 1 "db": 0 of 1 permits free');
    expect(error.message).toContain('cycle: "root" (0) → "root" (0)');
  });

  it("finds the circle through tasks and groups too", () => {
    const error = deadlockOf(function* () {
      const semaphore = yield* createSemaphore(1);
      yield* acquireSemaphore(semaphore);
      const child = yield* spawn(withSemaphore(semaphore, log("never")), { name: "child" });
      const bystander = yield* spawn(delay(1), { name: "bystander" });
      yield* gather(bystander, child);
    });
    expect(error.cycle?.map(({ task }) => task.name)).toEqual(["root", "child"]);
    expect(error.cycle?.[0]?.waitsFor).toBe('task "child" (1)');
  });

  it("rejects under run as well", async () => {
    const waiting = run(function* () {
      const { future } = yield* createPromise<void>();
      yield* race(future, future);
    });
    await expect(waiting).rejects.toBeInstanceOf(DeadlockError);
  });

  it("still runs the finally blocks of those who are stuck", () => {
    const lines: string[] = [];
    expect(() =>
      simulate(
        function* () {
          const { future } = yield* createPromise<void>();
          try {
            yield* wait(future);
          } finally {
            yield* delay(5);
            yield* log("finally");
          }
        },
        { onLog: (message) => lines.push(message) },
      ),
    ).toThrow(DeadlockError);
    expect(lines).toEqual(["finally"]);
  });

  it("fails even if a finally block of a task left over is what is stuck", () => {
    const error = deadlockOf(function* () {
      const { future } = yield* createPromise<void>();
      yield* spawn(
        function* () {
          try {
            yield* delay(1_000);
          } finally {
            yield* wait(future);
          }
        },
        { name: "stuck" },
      );
      yield* delay(1);
    });
    expect(error.parked.map(({ task }) => task.name)).toEqual(["stuck"]);
  });

  it("keeps the message readable when thousands are stuck, and lists all in the fields", () => {
    const error = deadlockOf(function* () {
      const { future } = yield* createPromise<void>();
      for (let i = 0; i < 5_000; i++) yield* spawn(wait(future));
      yield* wait(future);
    });
    expect(error.parked).toHaveLength(5_001);
    expect(error.message.length).toBeLessThan(2_000);
    expect(error.message).toContain("and 4981 more");
  });
});

describe("a dead set of semaphores, while others run", () => {
  /** Something that keeps the run alive for long. */
  function* ticker(ticks: number): Program<void> {
    for (let i = 0; i < ticks; i++) yield* delay(100);
    yield* log("ticker done");
  }

  it("is thrown into the task that closed a circle of two, which then saves the other", () => {
    const {
      value,
      log: lines,
      now,
    } = simulate(function* () {
      const a = yield* createSemaphore(1, { name: "a" });
      const b = yield* createSemaphore(1, { name: "b" });
      yield* spawn(ticker(100), { daemon: true });
      const first = yield* spawn(both(a, b, 1), { name: "first" });
      const second = yield* spawn(both(b, a, 2), { name: "second" });
      return [yield* tryCatch(wait(first)), yield* tryCatch(wait(second))] as const;
    });
    const [first, second] = value;
    expect(first).toEqual({ ok: true, value: undefined });
    const { error } = second as { error: DeadlockError };
    expect(error).toBeInstanceOf(DeadlockError);
    expect(error.semaphores.map(({ name }) => name)).toEqual(["a", "b"]);
    expect(error.semaphores[0]?.holders.map(({ task }) => task.name)).toEqual(["first"]);
    expect(error.semaphores[0]?.waiters.map((task) => task.name)).toEqual(["second"]);
    expect(error.cycle?.map(({ task }) => task.name).sort()).toEqual(["first", "second"]);
    expect(lines).toEqual(["both"]);
    expect(now).toBe(2);
  });

  it("is found in a circle of three, at the step that closes it", () => {
    const { value } = simulate(function* () {
      const [a, b, c] = [yield* createSemaphore(1), yield* createSemaphore(1), yield* createSemaphore(1)];
      yield* spawn(ticker(100), { daemon: true });
      const tasks = [
        yield* spawn(both(a, b, 1), { name: "x" }),
        yield* spawn(both(b, c, 2), { name: "y" }),
        yield* spawn(both(c, a, 3), { name: "z" }),
      ];
      const outcomes = [];
      for (const task of tasks) outcomes.push(yield* tryCatch(wait(task)));
      return outcomes;
    });
    expect(value.map(({ ok }) => ok)).toEqual([true, true, false]);
    const { error } = value[2] as { error: DeadlockError };
    expect(error.semaphores).toHaveLength(3);
    expect(error.cycle?.map(({ task }) => task.name)).toHaveLength(3);
  });

  it("is a leaked permit, although an unrelated timer is pending", () => {
    const { value, now } = simulate(function* () {
      const semaphore = yield* createSemaphore(1);
      yield* spawn(ticker(100), { daemon: true });
      const leaker = yield* spawn(acquireSemaphore(semaphore), { name: "leaker" });
      yield* wait(leaker);
      return yield* tryCatch(acquireSemaphore(semaphore));
    });
    const { error } = value as { error: DeadlockError };
    expect(error).toBeInstanceOf(DeadlockError);
    expect(error.semaphores[0]?.holders).toEqual([{ task: { id: 2, name: "leaker" }, permits: 1, hasEnded: true }]);
    expect(error.message).toContain('held by "leaker" (2), which has ended');
    expect(error.cycle).toBeUndefined();
    expect(now).toBe(0);
  });

  it("is thrown at the waiters, first to last, when a holder's end closes it", () => {
    const { value, now } = simulate(function* () {
      const semaphore = yield* createSemaphore(1);
      yield* spawn(ticker(100), { daemon: true });
      const leaker = yield* spawn(function* () {
        yield* acquireSemaphore(semaphore);
        yield* delay(5);
      });
      const waiters: Task<unknown>[] = [];
      for (let i = 0; i < 3; i++) waiters.push(yield* spawn(tryCatch(acquireSemaphore(semaphore))));
      const timed = yield* spawn(tryCatch(acquireSemaphore(semaphore, { timeoutMs: 20 })));
      yield* wait(leaker);
      return { untimed: yield* gather(...waiters), timed: yield* wait(timed) };
    });
    for (const outcome of value.untimed) expect(outcome).toMatchObject({ ok: false, error: expect.any(DeadlockError) });
    expect(value.timed).toMatchObject({ ok: false, error: { code: "ACQUIRE_TIMEOUT" } });
    expect(now).toBe(20);
  });

  it("is not thrown at waiters that an earlier victim can still save", () => {
    const { value } = simulate(function* () {
      const a = yield* createSemaphore(2);
      const b = yield* createSemaphore(1);
      yield* spawn(ticker(100), { daemon: true });
      // `holder` has one permit of a and waits for b; `victim` has b and waits for a; `leaker` has the other of a.
      const holder = yield* spawn(both(a, b, 1), { name: "holder" });
      const leaker = yield* spawn(function* () {
        yield* acquireSemaphore(a);
        yield* delay(10);
      });
      const victim = yield* spawn(both(b, a, 2), { name: "victim" });
      const saved = yield* spawn(both(a, yield* createSemaphore(1), 3), { name: "saved" });
      yield* wait(leaker);
      return [yield* tryCatch(wait(holder)), yield* tryCatch(wait(victim)), yield* tryCatch(wait(saved))];
    });
    expect(value.map(({ ok }) => ok)).toEqual([true, false, true]);
  });

  it("does not count a holder that waits with a timeout, or for something else", () => {
    const { log: lines } = simulate(function* () {
      const a = yield* createSemaphore(1);
      const b = yield* createSemaphore(1);
      const timed = yield* spawn(function* () {
        yield* acquireSemaphore(a);
        yield* delay(1);
        const outcome = yield* tryCatch(acquireSemaphore(b, { timeoutMs: 50 }));
        yield* log(outcome.ok ? "b" : (outcome.error as Error).name);
        yield* releaseSemaphore(a);
      });
      const untimed = yield* spawn(function* () {
        yield* acquireSemaphore(b);
        yield* delay(2);
        yield* acquireSemaphore(a);
        yield* log("a after all");
        yield* releaseSemaphore(a);
        yield* releaseSemaphore(b);
      });
      yield* gather(timed, untimed);
    });
    expect(lines).toEqual(["AcquireTimeoutError", "a after all"]);
  });

  it("does not include a semaphore with another permit free, or with a holder that can run", () => {
    const { log: lines } = simulate(function* () {
      const a = yield* createSemaphore(2);
      const b = yield* createSemaphore(1);
      yield* spawn(withSemaphore(a, delay(50)));
      yield* gather(yield* spawn(both(a, b, 1)), yield* spawn(both(b, a, 2)));
    });
    expect(lines).toEqual(["both", "both"]);
  });

  it("is not reported for a semaphore used as a signal: a task released it without holding it", () => {
    const { log: lines, now } = simulate(function* () {
      const items = yield* createSemaphore(10);
      // Drained by a task that ends: without the signalling this would be a leak.
      const drain = yield* spawn(function* () {
        for (let i = 0; i < 10; i++) yield* acquireSemaphore(items);
        yield* delay(1);
      });
      const producer = yield* spawn(function* () {
        yield* wait(drain);
        for (let i = 0; i < 5; i++) {
          yield* releaseSemaphore(items);
          yield* delay(10);
        }
      });
      const consumer = yield* spawn(function* () {
        yield* wait(drain);
        for (let i = 0; i < 5; i++) {
          yield* acquireSemaphore(items);
          yield* log(`item ${i}`);
        }
      });
      yield* gather(producer, consumer);
    });
    expect(lines).toEqual(["item 0", "item 1", "item 2", "item 3", "item 4"]);
    expect(now).toBe(51);
  });

  it("is found along a chain of ten thousand semaphores without overflowing the stack", () => {
    const length = 10_000;
    const { value } = simulate(function* () {
      const chain: SemaphoreHandle[] = [];
      for (let i = 0; i < length; i++) chain.push(yield* createSemaphore(1));
      const tasks: Task<void>[] = [];
      for (let i = 0; i < length; i++) {
        const next = chain[(i + 1) % length] as SemaphoreHandle;
        // The last to acquire its second is task 0: only then is the circle closed, so that the chain is walked once.
        tasks.push(
          yield* spawn(function* () {
            yield* acquireSemaphore(chain[i] as SemaphoreHandle);
            yield* delay(i === 0 ? 2 : 1);
            yield* acquireSemaphore(next);
            yield* releaseSemaphore(next);
          }),
        );
      }
      const outcome = yield* tryCatch(wait(tasks[0] as Task<void>));
      for (const task of tasks) yield* cancel(task);
      return outcome;
    });
    const { error } = value as { error: DeadlockError };
    expect(error.semaphores).toHaveLength(length);
    expect(error.cycle).toHaveLength(length);
  });
});
