/** A program gives the same results, log and number of steps whichever way its effects are yielded. */
import {
  acquireSemaphore,
  createSemaphore,
  delay,
  type Effect,
  log,
  type Program,
  releaseSemaphore,
  type SemaphoreHandle,
  StepLimitError,
  simulate,
  spawn,
  type Task,
  tryAcquireSemaphore,
  tryCatch,
  wait,
} from "slotkeeper/effects";
import { describe, expect, it } from "vitest";

type Drive = <T>(program: Program<T>) => Program<T>;

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

const WAYS: readonly [string, Drive][] = [
  ["by hand, with `yield`", plain],
  ["by hand, with `yield*`", delegating],
  ["by hand, twice over", (program) => plain(delegating(program))],
  ["through other objects", rewrapped],
];

/** Several users of a semaphore, one after the other. */
const users = (drive: Drive, count: number, permits: number) =>
  function* (): Program<{ answers: unknown[]; isFree: boolean }> {
    const semaphore = yield* createSemaphore(permits);
    const tasks: Task<unknown[]>[] = [];
    for (let id = 0; id < count; id++) tasks.push(yield* spawn(drive(user(semaphore, id))));
    const answers: unknown[] = [];
    for (const task of tasks) answers.push(yield* wait(task));
    return { answers, isFree: yield* tryAcquireSemaphore(semaphore) };
  };

describe("a program whose effects are yielded", () => {
  it.each(WAYS)("%s, takes the same steps with the same answers as with `yield*`, under any seed", (_, drive) => {
    for (let seed = 0; seed < 20; seed++) {
      // An effect that takes its answer for a first call would ask for ever: hence the limit.
      const { value, log: lines, steps } = simulate(users(drive, 4, 2), { seed, maxSteps: 1_000 });
      const usual = simulate(
        users((program) => program, 4, 2),
        { seed },
      );
      expect({ value, lines, steps }).toEqual({ value: usual.value, lines: usual.log, steps: usual.steps });
      expect(value.isFree).toBe(true);
    }
  });

  it("each does its work once, in the order of arrival at one permit", () => {
    const { value, log: lines } = simulate(users((program) => program, 3, 1));
    const nothing = [undefined, undefined, undefined];
    expect(value).toEqual({ answers: [nothing, nothing, nothing], isFree: true });
    expect(lines).toEqual(["0 in", "0 out", "1 in", "1 out", "2 in", "2 out"]);
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

  it("count as steps even if none of them waits, so an endless program is stopped", () => {
    const endless = function* (): Program<void> {
      const semaphore = yield* createSemaphore(1);
      for (;;) {
        yield* acquireSemaphore(semaphore);
        yield* releaseSemaphore(semaphore);
      }
    };
    expect(() => simulate(endless, { maxSteps: 1_000 })).toThrow(StepLimitError);
  });
});
