import {
  createPromise,
  createSemaphore,
  delay,
  type Effect,
  type Future,
  fromPromise,
  gather,
  now,
  type Outcome,
  type Program,
  race,
  run,
  type SemaphoreHandle,
  type SimulationResult,
  simulate,
  spawn,
  type Task,
  tryAcquireSemaphore,
  tryCatch,
  wait,
  withSemaphore,
} from "slotkeeper/effects";
import { expectTypeOf, it } from "vitest";

function* text(): Program<string> {
  yield* delay(1);
  return "text";
}

it("yield* gives typed results, and no any", () => {
  simulate(function* () {
    const semaphore = yield* createSemaphore(1);
    expectTypeOf(semaphore).toEqualTypeOf<SemaphoreHandle>();
    expectTypeOf(yield* tryAcquireSemaphore(semaphore)).toEqualTypeOf<boolean>();
    expectTypeOf(yield* now()).toEqualTypeOf<number>();
    expectTypeOf(yield* delay(1)).toEqualTypeOf<void>();
    const task = yield* spawn(text());
    expectTypeOf(task).toEqualTypeOf<Task<string>>();
    expectTypeOf(yield* spawn(text)).toEqualTypeOf<Task<string>>();
    expectTypeOf(yield* spawn(now())).toEqualTypeOf<Task<number>>();
    expectTypeOf(yield* wait(task)).toEqualTypeOf<string>();
    const promise = yield* createPromise<Date>();
    expectTypeOf(promise.future).toEqualTypeOf<Future<Date>>();
    expectTypeOf(yield* wait(promise.future)).toEqualTypeOf<Date>();
    expectTypeOf(yield* withSemaphore(semaphore, text())).toEqualTypeOf<string>();
    expectTypeOf(yield* tryCatch(text)).toEqualTypeOf<Outcome<string>>();
    expectTypeOf(yield* fromPromise(Promise.resolve(5))).toEqualTypeOf<number>();
    expectTypeOf(yield* fromPromise((signal) => Promise.resolve(signal.aborted))).toEqualTypeOf<boolean>();
    expectTypeOf(yield delay(1)).toBeUnknown();
  });
});

it("gather keeps the type of each item, race has one of them", () => {
  simulate(function* () {
    const task = yield* spawn(text());
    const { future } = yield* createPromise<Date>();
    expectTypeOf(yield* gather(task, future, wait(task), now())).toEqualTypeOf<[string, Date, string, number]>();
    const many: Task<string>[] = [task, task];
    expectTypeOf(yield* gather(...many)).toEqualTypeOf<string[]>();
    expectTypeOf(yield* gather()).toEqualTypeOf<[]>();
    expectTypeOf(yield* race(task, future, now())).toEqualTypeOf<string | Date | number>();
  });
});

it("run and simulate give what the program returns", () => {
  expectTypeOf(run(text)).toEqualTypeOf<Promise<string>>();
  expectTypeOf(run(text())).toEqualTypeOf<Promise<string>>();
  expectTypeOf(simulate(text)).toEqualTypeOf<SimulationResult<string>>();
  expectTypeOf(simulate(text).value).toEqualTypeOf<string>();
});

it("only effects can be yielded, and handles cannot be made", () => {
  // @ts-expect-error -- a number is not an effect
  expectTypeOf(run).toBeCallableWith(function* () {
    yield 5;
  });
  // @ts-expect-error -- opaque
  const handle: SemaphoreHandle = { id: 1 };
  expectTypeOf(handle.id).toEqualTypeOf<number>();
  expectTypeOf<Effect<string>>().toExtend<Effect<unknown>>();
});
