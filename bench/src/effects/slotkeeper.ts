import {
  acquireSemaphore,
  createSemaphore,
  delay,
  gather,
  type Program,
  releaseSemaphore,
  run,
  type SemaphoreHandle,
  spawn,
  type Task,
} from "slotkeeper/effects";
import type { Subject, Workload } from "./workload.ts";

function* worker(semaphore: SemaphoreHandle, rounds: number): Program<void> {
  for (let i = 0; i < rounds; i++) {
    yield* acquireSemaphore(semaphore);
    yield* delay(0);
    yield* releaseSemaphore(semaphore);
  }
}

function* start({ tasks, rounds, permits }: Workload): Program<void> {
  const semaphore = yield* createSemaphore(permits);
  const started: Task<void>[] = [];
  for (let i = 0; i < tasks; i++) started.push(yield* spawn(worker(semaphore, rounds)));
  yield* gather(...started);
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
  crowd: (workload) => run(start(workload)),
  parked: (workload, whenParked) => run(park(workload, whenParked)),
};
