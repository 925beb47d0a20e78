import {
  acquireSemaphore,
  cancel,
  createPromise,
  createSemaphore,
  delay,
  gather,
  log,
  now,
  type Program,
  race,
  releaseSemaphore,
  simulate,
  spawn,
  type Task,
  TaskCancelledError,
  tryAcquireSemaphore,
  tryCatch,
  wait,
} from "slotkeeper/effects";
import { describe, expect, it } from "vitest";

describe("cancel", () => {
  it("throws TaskCancelledError into the target, whose finally blocks run and may yield effects", () => {
    const { log: lines, value } = simulate(function* () {
      const task = yield* spawn(
        function* () {
          try {
            yield* delay(1_000);
          } catch (error) {
            yield* log(`caught ${(error as Error).name}`);
            throw error;
          } finally {
            yield* delay(5);
            yield* log("cleaned up");
          }
        },
        { name: "sleeper" },
      );
      yield* delay(10);
      yield* cancel(task);
      yield* log("cancelled");
      const outcome = yield* tryCatch(wait(task));
      return { outcome, at: yield* now() };
    });
    expect(lines).toEqual(["cancelled", "caught TaskCancelledError", "cleaned up"]);
    expect(value.outcome).toMatchObject({
      ok: false,
      error: { code: "TASK_CANCELLED", message: 'Task "sleeper" was cancelled', task: { id: 1, name: "sleeper" } },
    });
    expect(value.at).toBe(15);
  });

  it("wakes the waiters on the task after its finally ran, by wait, gather and race alike", () => {
    const { log: lines } = simulate(function* () {
      const task = yield* spawn(function* () {
        try {
          yield* delay(1_000);
        } finally {
          yield* delay(5);
          yield* log("finally");
        }
      });
      const watchers: Task<void>[] = [];
      for (const waiting of [wait(task), gather(task), race(task)]) {
        watchers.push(
          yield* spawn(function* () {
            const outcome = yield* tryCatch<unknown>(waiting);
            yield* log(outcome.ok ? "value" : (outcome.error as Error).name);
          }),
        );
      }
      yield* delay(1);
      yield* cancel(task);
      yield* gather(...watchers);
    });
    expect(lines).toEqual(["finally", "TaskCancelledError", "TaskCancelledError", "TaskCancelledError"]);
  });

  it("wakes a parked target at once, whatever it is parked on, and leaves nothing behind", () => {
    const { value, now: end } = simulate(function* () {
      const semaphore = yield* createSemaphore(1);
      yield* acquireSemaphore(semaphore);
      const { future } = yield* createPromise<void>();
      const never = yield* spawn(wait(future), { daemon: true });
      const parkings = [
        delay(1_000),
        acquireSemaphore(semaphore),
        acquireSemaphore(semaphore, { timeoutMs: 1_000 }),
        wait(future),
        wait(never),
        gather(never, future),
        race(never, future),
      ];
      const ended: number[] = [];
      for (const effect of parkings) {
        const task = yield* spawn(effect as never);
        yield* delay(1);
        yield* cancel(task);
        yield* tryCatch(wait(task));
        ended.push(yield* now());
      }
      yield* releaseSemaphore(semaphore);
      return { ended, isFree: yield* tryAcquireSemaphore(semaphore) };
    });
    expect(value).toEqual({ ended: [1, 2, 3, 4, 5, 6, 7], isFree: true });
    expect(end).toBe(7);
  });

  it("of a parked acquirer takes it out of the queue and consumes no permit", () => {
    const { log: lines } = simulate(function* () {
      const semaphore = yield* createSemaphore(1);
      yield* acquireSemaphore(semaphore);
      function* user(name: string): Program<void> {
        yield* acquireSemaphore(semaphore);
        yield* log(name);
        yield* releaseSemaphore(semaphore);
      }
      const first = yield* spawn(user("first"));
      const second = yield* spawn(user("second"));
      const third = yield* spawn(user("third"));
      yield* delay(1);
      yield* cancel(second);
      yield* releaseSemaphore(semaphore);
      yield* gather(first, third);
    });
    expect(lines).toEqual(["first", "third"]);
  });

  it("passes a permit in flight on to the next waiter", () => {
    const { log: lines, permitsLeaked } = simulate(function* () {
      const semaphore = yield* createSemaphore(1);
      yield* acquireSemaphore(semaphore);
      function* user(name: string): Program<void> {
        yield* acquireSemaphore(semaphore);
        yield* log(name);
        yield* releaseSemaphore(semaphore);
      }
      const first = yield* spawn(user("first"));
      const second = yield* spawn(user("second"));
      yield* delay(1);
      yield* releaseSemaphore(semaphore);
      yield* cancel(first);
      yield* wait(second);
    });
    expect(lines).toEqual(["second"]);
    expect(permitsLeaked).toEqual([]);
  });

  it("puts a permit in flight back if no other task waits", () => {
    const { value } = simulate(function* () {
      const semaphore = yield* createSemaphore(1);
      yield* acquireSemaphore(semaphore);
      const only = yield* spawn(acquireSemaphore(semaphore));
      yield* delay(1);
      yield* releaseSemaphore(semaphore);
      const whileInFlight = yield* tryAcquireSemaphore(semaphore);
      yield* cancel(only);
      return [whileInFlight, yield* tryAcquireSemaphore(semaphore)];
    });
    expect(value).toEqual([false, true]);
  });

  it("does not put back a permit in flight that an extra release has given back already", () => {
    const { value } = simulate(function* () {
      const semaphore = yield* createSemaphore(1);
      yield* acquireSemaphore(semaphore);
      const only = yield* spawn(acquireSemaphore(semaphore));
      yield* delay(1);
      yield* releaseSemaphore(semaphore);
      yield* releaseSemaphore(semaphore);
      yield* cancel(only);
      return [yield* tryAcquireSemaphore(semaphore), yield* tryAcquireSemaphore(semaphore)];
    });
    expect(value).toEqual([true, false]);
  });

  it("of a task that never started ends it without running any of it", () => {
    const { log: lines, value } = simulate(function* () {
      const task = yield* spawn(log("never"));
      yield* cancel(task);
      return yield* tryCatch(wait(task));
    });
    expect(lines).toEqual([]);
    expect(value).toMatchObject({ ok: false, error: expect.any(TaskCancelledError) });
  });

  it("a second time, while the target unwinds, does nothing", () => {
    const { log: lines } = simulate(function* () {
      const task = yield* spawn(function* () {
        try {
          yield* delay(1_000);
        } finally {
          yield* delay(10);
          yield* log("unwound undisturbed");
        }
      });
      yield* delay(1);
      yield* cancel(task);
      yield* delay(1);
      yield* cancel(task);
      yield* tryCatch(wait(task));
    });
    expect(lines).toEqual(["unwound undisturbed"]);
  });

  it("that the task swallows lets it end normally", () => {
    const { value } = simulate(function* () {
      const task = yield* spawn(function* () {
        try {
          yield* delay(1_000);
        } catch {
          return "swallowed";
        }
        return "slept";
      });
      yield* delay(1);
      yield* cancel(task);
      return yield* wait(task);
    });
    expect(value).toBe("swallowed");
  });

  it("of a task that has ended does nothing", () => {
    const { value } = simulate(function* () {
      const good = yield* spawn(now());
      const bad = yield* spawn(function* (): Program<void> {
        yield* delay(1);
        throw new Error("bad");
      });
      yield* delay(2);
      yield* cancel(good);
      yield* cancel(bad);
      return [yield* wait(good), yield* tryCatch(wait(bad))];
    });
    expect(value).toEqual([0, { ok: false, error: new Error("bad") }]);
  });

  it("of oneself takes effect at the next yield", () => {
    const { log: lines } = simulate(function* () {
      let isPastCancel = false;
      const own: Task<void> = yield* spawn(function* () {
        yield* delay(1);
        try {
          yield* cancel(own);
          isPastCancel = true;
          yield* log("never");
        } finally {
          yield* log(`finally, past cancel: ${isPastCancel}`);
        }
      });
      const outcome = yield* tryCatch(wait(own));
      yield* log(outcome.ok ? "ended" : (outcome.error as Error).name);
    });
    expect(lines).toEqual(["finally, past cancel: true", "TaskCancelledError"]);
  });

  it.each([
    ["a sleep", () => delay(10)],
    ["a plain yield", () => now()],
  ])("of oneself stops %s, with and without a star", (_, effect) => {
    for (const isStarred of [true, false]) {
      const { value } = simulate(function* () {
        const own: Task<void> = yield* spawn(function* () {
          yield* cancel(own);
          if (isStarred) yield* effect();
          else yield effect();
        });
        return { outcome: yield* tryCatch(wait(own)), at: yield* now() };
      });
      expect(value).toMatchObject({ outcome: { ok: false, error: expect.any(TaskCancelledError) }, at: 0 });
    }
  });

  it("of oneself, with no yield to come, lets the task end normally", () => {
    const { value } = simulate(function* () {
      const own: Task<string> = yield* spawn(function* () {
        yield* cancel(own);
        return "done";
      });
      return yield* wait(own);
    });
    expect(value).toBe("done");
  });

  it("is not an unobserved failure", () => {
    const { value } = simulate(function* () {
      const task = yield* spawn(delay(1_000));
      yield* cancel(task);
      yield* delay(5);
      return "fine";
    });
    expect(value).toBe("fine");
  });

  it("refuses what is not a task of this run", () => {
    const stranger = simulate(spawn(delay(1))).value;
    const { value } = simulate(function* () {
      const { future } = yield* createPromise<void>();
      const outcomes = [];
      for (const thing of [stranger, future, 5, undefined]) outcomes.push(yield* tryCatch(cancel(thing as Task<void>)));
      return outcomes;
    });
    for (const outcome of value) expect(outcome).toMatchObject({ ok: false, error: expect.any(TypeError) });
  });

  it("aborted at every step in turn never leaks a permit", () => {
    function* worker(semaphore: Parameters<typeof acquireSemaphore>[0]): Program<void> {
      yield* acquireSemaphore(semaphore);
      try {
        yield* delay(1);
        yield* delay(0);
        yield* log("x");
      } finally {
        yield* releaseSemaphore(semaphore);
      }
    }
    for (let cancelAt = 0; cancelAt < 12; cancelAt++) {
      const { value, permitsLeaked } = simulate(function* () {
        const semaphore = yield* createSemaphore(1);
        const tasks: Task<void>[] = [];
        for (let i = 0; i < 3; i++) tasks.push(yield* spawn(worker(semaphore)));
        for (let turn = 0; turn < cancelAt; turn++) yield* delay(turn % 3 === 2 ? 1 : 0);
        yield* cancel(tasks[1] as Task<void>);
        for (const task of tasks) yield* tryCatch(wait(task));
        return yield* tryAcquireSemaphore(semaphore);
      });
      expect(value).toBe(true);
      expect(permitsLeaked.filter(({ task }) => task.name !== "root")).toEqual([]);
    }
  });
});
