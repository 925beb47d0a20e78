import { Effect, Fiber, Semaphore } from "effect";
import type { Subject, Workload } from "./workload.ts";

const worker = (semaphore: Semaphore.Semaphore, rounds: number): Effect.Effect<void> =>
  Effect.gen(function* () {
    for (let i = 0; i < rounds; i++) {
      yield* semaphore.take(1);
      yield* Effect.yieldNow;
      yield* semaphore.release(1);
    }
  });

const enter = (semaphore: Semaphore.Semaphore): Effect.Effect<void> =>
  Effect.gen(function* () {
    yield* semaphore.take(1);
  });

const pause = (): Effect.Effect<void> =>
  Effect.gen(function* () {
    yield* Effect.yieldNow;
  });

const leave = (semaphore: Semaphore.Semaphore): Effect.Effect<void> =>
  Effect.gen(function* () {
    yield* semaphore.release(1);
  });

const workerWithHelpers = (semaphore: Semaphore.Semaphore, rounds: number): Effect.Effect<void> =>
  Effect.gen(function* () {
    for (let i = 0; i < rounds; i++) {
      yield* enter(semaphore);
      yield* pause();
      yield* leave(semaphore);
    }
  });

const start = ({ tasks, rounds, permits }: Workload, program = worker): Effect.Effect<void> =>
  Effect.gen(function* () {
    const semaphore = yield* Semaphore.make(permits);
    const started: Fiber.Fiber<void>[] = [];
    for (let i = 0; i < tasks; i++) started.push(yield* Effect.forkChild(program(semaphore, rounds)));
    for (const fiber of started) yield* Fiber.join(fiber);
  });

const park = ({ tasks, permits }: Workload, whenParked: () => void): Effect.Effect<void> =>
  Effect.gen(function* () {
    const semaphore = yield* Semaphore.make(permits);
    yield* semaphore.take(1);
    for (let i = 0; i < tasks; i++) yield* Effect.forkChild(worker(semaphore, 1));
    yield* Effect.yieldNow;
    whenParked();
  });

export const effectFibers: Subject = {
  rounds: (workload) => Effect.runPromise(start(workload)),
  helpers: (workload) => Effect.runPromise(start(workload, workerWithHelpers)),
  crowd: (workload) => Effect.runPromise(start(workload)),
  parked: (workload, whenParked) => Effect.runPromise(park(workload, whenParked)),
};
