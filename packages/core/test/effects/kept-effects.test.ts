/** `delay(0)` and the acquiring and releasing of a semaphore are effects made once, which any number of tasks may be in. */
import {
  acquireSemaphore,
  cancel,
  createSemaphore,
  DeadlockError,
  delay,
  type Effect,
  log,
  type Program,
  releaseSemaphore,
  type SemaphoreHandle,
  simulate,
  spawn,
  type Task,
  TaskCancelledError,
  tryAcquireSemaphore,
  tryCatch,
  wait,
} from "slotkeeper/effects";
import { describe, expect, it } from "vitest";

function* user(semaphore: SemaphoreHandle, id: number): Program<unknown[]> {
  const answers: unknown[] = [yield* acquireSemaphore(semaphore)];
  yield* log(`${id} in`);
  answers.push(yield* delay(0));
  answers.push(yield* releaseSemaphore(semaphore));
  yield* log(`${id} out`);
  return answers;
}

/** Drives a program by hand, and performs what it yields as `perform` says. */
function drivenBy(perform: (effect: Effect<unknown>) => Program<unknown>) {
  return function* <T>(program: Program<T>): Program<T> {
    let step = program.next();
    while (step.done !== true) step = program.next(yield* perform(step.value));
    return step.value;
  };
}

const plain = drivenBy(function* (effect) {
  return yield effect;
});
const delegating = drivenBy(function* (effect) {
  return yield* effect;
});
/** As a compiler for old engines, or a wrapper of iterators, would hand on results: fresh ones, without generators. */
function rewrapped<T>(program: Program<T>): Program<T> {
  const driver = {
    next: (value: unknown) => ({ ...program.next(value) }),
    throw: (error: unknown) => ({ ...program.throw(error) }),
    return: (value: T) => ({ ...program.return(value) }),
    [Symbol.iterator]: () => driver,
  };
  return driver as Program<T>;
}

const three = (drive: <T>(program: Program<T>) => Program<T>) =>
  function* (): Program<{ answers: unknown[]; isFree: boolean }> {
    const semaphore = yield* createSemaphore(1);
    const tasks: Task<unknown[]>[] = [];
    for (let id = 0; id < 3; id++) tasks.push(yield* spawn(drive(user(semaphore, id))));
    const answers: unknown[] = [];
    for (const task of tasks) answers.push(yield* wait(task));
    return { answers, isFree: yield* tryAcquireSemaphore(semaphore) };
  };

/** A kept effect that takes its answer for a first call would ask again for ever: hence the limit. */
const inTurn = (drive: <T>(program: Program<T>) => Program<T>) => simulate(three(drive), { maxSteps: 1_000 });

describe("a kept effect", () => {
  it.each([
    ["as it is", <T>(program: Program<T>) => program],
    ["by hand, with `yield`", plain],
    ["by hand, with `yield*`", delegating],
    ["by hand, twice over", <T>(program: Program<T>) => plain(delegating(program))],
    ["through other objects", rewrapped],
  ])("does its work once and answers nothing when its program is driven %s", (_, drive) => {
    const nothing = [undefined, undefined, undefined];
    const { value, log: lines, steps } = inTurn(drive);
    expect(value).toEqual({ answers: [nothing, nothing, nothing], isFree: true });
    expect(lines).toEqual(["0 in", "0 out", "1 in", "1 out", "2 in", "2 out"]);
    expect(steps).toBe(23);
  });

  it("answers nothing to a `yield` without a star either", () => {
    const { value } = simulate(function* (): Program<unknown[]> {
      const semaphore = yield* createSemaphore(1);
      const free = yield acquireSemaphore(semaphore);
      const waiter = yield* spawn(function* (): Program<unknown> {
        return yield acquireSemaphore(semaphore);
      });
      const paused = yield delay(0);
      return [free, paused, yield releaseSemaphore(semaphore), yield* wait(waiter)];
    });
    expect(value).toEqual([undefined, undefined, undefined, undefined]);
  });

  it("leaves no answer behind for the next effect of its task", () => {
    const { value } = simulate(function* (): Program<unknown[]> {
      const semaphore = yield* createSemaphore(1);
      yield* delay(0);
      return [yield acquireSemaphore(semaphore), yield delay(1), yield* tryCatch(delay(0)), yield delay(0)];
    });
    expect(value).toEqual([undefined, undefined, { ok: true, value: undefined }, undefined]);
  });

  it("refuses a semaphore of another run at the yield", () => {
    const stranger = simulate(createSemaphore(1)).value;
    for (const effect of [acquireSemaphore(stranger), releaseSemaphore(stranger)]) {
      expect(() => simulate(effect)).toThrow(new TypeError("Semaphore 1 belongs to another run"));
      expect(() => effect[Symbol.iterator]().next()).toThrow("outside of any");
    }
  });

  it("refuses what is no handle at the yield, not before", () => {
    for (const effect of [acquireSemaphore, releaseSemaphore].map((make) => make({} as SemaphoreHandle))) {
      expect(() => simulate(effect)).toThrow("Expected a semaphore handle of `createSemaphore`");
    }
  });
});

describe("a task that got the error of a dead set", () => {
  it("is running: cancelling itself takes effect at its next yield, once", () => {
    const { value } = simulate(function* () {
      const semaphore = yield* createSemaphore(1);
      const seen: unknown[] = [];
      const self: Task<void> = yield* spawn(function* () {
        yield* acquireSemaphore(semaphore);
        const deadlock = yield* tryCatch(acquireSemaphore(semaphore));
        seen.push(!deadlock.ok && deadlock.error instanceof DeadlockError);
        yield* cancel(self);
        seen.push("after the cancel");
        try {
          yield* delay(0);
          seen.push("never");
        } finally {
          yield* releaseSemaphore(semaphore);
        }
      });
      const outcome = yield* tryCatch(wait(self));
      seen.push(!outcome.ok && outcome.error instanceof TaskCancelledError);
      return { seen, isFree: yield* tryAcquireSemaphore(semaphore) };
    });
    expect(value).toEqual({ seen: [true, "after the cancel", true], isFree: true });
  });
});
