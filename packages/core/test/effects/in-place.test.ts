/** `yield*` of an effect that need not park goes on without leaving the generator; what it does is the same. */
import {
  acquireSemaphore,
  cancel,
  completePromise,
  createPromise,
  createSemaphore,
  delay,
  type Effect,
  log,
  now,
  type Program,
  releaseSemaphore,
  type SemaphoreHandle,
  StepLimitError,
  simulate,
  spawn,
  type Task,
  TaskCancelledError,
  tryAcquireSemaphore,
  tryCatch,
  wait,
} from "slotkeeper/effects";
import { describe, expect, it } from "vitest";

/** The program, driven by hand; `seen` gets whatever it yields to its driver. */
function* watched<T>(program: Program<T>, seen: Effect<unknown>[]): Program<T> {
  let step = program.next();
  while (step.done !== true) {
    seen.push(step.value);
    step = program.next(yield step.value);
  }
  return step.value;
}

function* nonParking(semaphore: SemaphoreHandle): Program<string> {
  yield* acquireSemaphore(semaphore);
  yield* tryAcquireSemaphore(semaphore);
  yield* releaseSemaphore(semaphore);
  yield* log("x");
  yield* now();
  const promise = yield* createPromise<string>();
  yield* completePromise(promise, "settled");
  const child = yield* spawn(log("child"));
  yield* cancel(child);
  yield* createSemaphore(1);
  return yield* wait(promise.future);
}

/** Four tasks over two permits, which ask for everything by way of `ask`. */
function shared(ask: <T>(effect: Effect<T>) => Effect<T> | Program<T>): () => Program<void> {
  function* user(semaphore: SemaphoreHandle, id: number): Program<void> {
    yield* ask(acquireSemaphore(semaphore));
    yield* ask(log(`${id} in`));
    yield* ask(delay(0));
    yield* ask(releaseSemaphore(semaphore));
    yield* ask(log(`${id} out`));
  }
  return function* () {
    const semaphore = yield* ask(createSemaphore(2));
    const users: Task<void>[] = [];
    for (let id = 0; id < 4; id++) users.push(yield* ask(spawn(user(semaphore, id))));
    for (const task of users) yield* ask(wait(task));
  };
}

describe("an effect that need not park", () => {
  it("does not suspend the generator, and still counts as a step", () => {
    const seen: Effect<unknown>[] = [];
    const { value, steps } = simulate(function* () {
      const semaphore = yield* createSemaphore(1);
      return yield* watched(nonParking(semaphore), seen);
    });
    expect({ value, steps, seen }).toEqual({ value: "settled", steps: 12, seen: [] });
  });

  it("is distinguished from one that parks: that suspends once, and is answered once", () => {
    const seen: Effect<unknown>[] = [];
    const { value, steps } = simulate(function* () {
      const semaphore = yield* createSemaphore(1);
      yield* acquireSemaphore(semaphore);
      const waiter = yield* spawn(watched(nonParking(semaphore), seen));
      yield* delay(0);
      yield* releaseSemaphore(semaphore);
      return yield* wait(waiter);
    });
    expect({ value, steps, suspensions: seen.length }).toEqual({ value: "settled", steps: 17, suspensions: 1 });
  });

  it("takes the same steps in the same order as by `yield`, under any seed", () => {
    const asked = <T>(effect: Effect<T>): Program<T> =>
      (function* () {
        return (yield effect) as T;
      })();
    for (let seed = 0; seed < 20; seed++) {
      const inPlace = simulate(
        shared((effect) => effect),
        { seed },
      );
      const throughTheLoop = simulate(shared(asked), { seed });
      expect(throughTheLoop.log).toEqual(inPlace.log);
      expect([inPlace.steps, throughTheLoop.steps]).toEqual([29, 29]);
    }
  });

  it("counts towards maxSteps", () => {
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

describe("a task that cancels itself between two steps that do not park", () => {
  it.each([
    ["acquireSemaphore", (semaphore: SemaphoreHandle) => acquireSemaphore(semaphore)],
    ["log", () => log("never")],
    ["now", () => now()],
  ])("is interrupted at the second, %s, which is not done", (_, second) => {
    const { value, log: lines } = simulate(function* () {
      const semaphore = yield* createSemaphore(1);
      const self: Task<void> = yield* spawn(function* () {
        yield* cancel(self);
        yield* second(semaphore);
      });
      const outcome = yield* tryCatch(wait(self));
      return { outcome, isFree: yield* tryAcquireSemaphore(semaphore) };
    });
    expect(value).toMatchObject({ outcome: { ok: false, error: expect.any(TaskCancelledError) }, isFree: true });
    expect(lines).toEqual([]);
  });
});

describe("a simulation inside a running task", () => {
  const inner = function* (): Program<string> {
    const semaphore = yield* createSemaphore(1);
    yield* acquireSemaphore(semaphore);
    yield* delay(1_000);
    yield* log("inner");
    return "inner";
  };

  it("leaves the task in its own run, before and after", () => {
    const {
      value,
      log: lines,
      now: end,
      steps,
    } = simulate(function* () {
      const semaphore = yield* createSemaphore(1);
      yield* acquireSemaphore(semaphore);
      const nested = simulate(inner);
      yield* releaseSemaphore(semaphore);
      yield* log(`${nested.value} took ${nested.now}`);
      return yield* now();
    });
    expect({ value, lines, end, steps }).toEqual({ value: 0, lines: ["inner took 1000"], end: 0, steps: 5 });
  });

  it("does so when it throws, too", () => {
    const { value, log: lines } = simulate(function* () {
      const semaphore = yield* createSemaphore(1);
      yield* acquireSemaphore(semaphore);
      expect(() =>
        simulate(function* () {
          yield* inner();
          throw new Error("boom");
        }),
      ).toThrow("boom");
      yield* releaseSemaphore(semaphore);
      yield* log("outer");
      return yield* tryAcquireSemaphore(semaphore);
    });
    expect({ value, lines }).toEqual({ value: true, lines: ["outer"] });
  });
});

describe("an effect outside of any run", () => {
  it.each([
    ["that need not park", log("x")],
    ["that parks", delay(1)],
  ])("is refused with a sentence, one %s", (_, effect) => {
    function* program(): Program<unknown> {
      return yield* effect;
    }
    expect(() => program().next()).toThrow(
      new TypeError(
        "Expected an effect to be yielded by a running task, got one outside of any: start its program by `run`, `simulate` or `spawn`",
      ),
    );
  });

  it("is so after a run, too", () => {
    simulate(log("x"));
    expect(() => log("y")[Symbol.iterator]().next()).toThrow(TypeError);
  });
});
