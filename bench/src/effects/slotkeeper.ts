import {
  acquireSemaphore,
  createSemaphore,
  delay,
  type Program,
  releaseSemaphore,
  run,
  type SemaphoreHandle,
  spawn,
  type Task,
  wait,
} from "slotkeeper/effects";
import type { Subject, Workload } from "./workload.ts";

function* worker(semaphore: SemaphoreHandle, rounds: number): Program<void> {
  for (let i = 0; i < rounds; i++) {
    yield* acquireSemaphore(semaphore);
    yield* delay(0);
    yield* releaseSemaphore(semaphore);
  }
}

function* enter(semaphore: SemaphoreHandle): Program<void> {
  yield* acquireSemaphore(semaphore);
}

function* pause(): Program<void> {
  yield* delay(0);
}

function* leave(semaphore: SemaphoreHandle): Program<void> {
  yield* releaseSemaphore(semaphore);
}

function* workerWithHelpers(semaphore: SemaphoreHandle, rounds: number): Program<void> {
  for (let i = 0; i < rounds; i++) {
    yield* enter(semaphore);
    yield* pause();
    yield* leave(semaphore);
  }
}

function* start({ tasks, rounds, permits }: Workload, program = worker): Program<void> {
  const semaphore = yield* createSemaphore(permits);
  const started: Task<void>[] = [];
  for (let i = 0; i < tasks; i++) started.push(yield* spawn(program(semaphore, rounds)));
  for (const task of started) yield* wait(task);
}

function* park({ tasks, permits }: Workload, whenParked: () => void): Program<void> {
  const semaphore = yield* createSemaphore(permits);
  yield* acquireSemaphore(semaphore);
  for (let i = 0; i < tasks; i++) yield* spawn(worker(semaphore, 1));
  yield* delay(0);
  whenParked();
  yield* releaseSemaphore(semaphore);
}

export const slotkeeper: Subject = {
  rounds: (workload) => run(start(workload)),
  helpers: (workload) => run(start(workload, workerWithHelpers)),
  crowd: (workload) => run(start(workload)),
  parked: (workload, whenParked) => run(park(workload, whenParked)),
};
