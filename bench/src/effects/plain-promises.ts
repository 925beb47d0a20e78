/** The same programs as async functions, with the simplest possible semaphore: a counter and a queue of resolvers. */
import type { Subject, Workload } from "./workload.ts";

class BareSemaphore {
  #free: number;
  #queue: (() => void)[] = [];
  #first = 0;

  constructor(permits: number) {
    this.#free = permits;
  }

  acquire(): Promise<void> | undefined {
    if (this.#free > 0) {
      this.#free--;
      return undefined;
    }
    return new Promise((resolve) => this.#queue.push(resolve));
  }

  release(): void {
    const next = this.#queue[this.#first];
    if (next === undefined) {
      this.#free++;
      return;
    }
    this.#first++;
    if (this.#first > 1_024 && this.#first * 2 > this.#queue.length) {
      this.#queue = this.#queue.slice(this.#first);
      this.#first = 0;
    }
    next();
  }
}

async function worker(semaphore: BareSemaphore, rounds: number): Promise<void> {
  for (let i = 0; i < rounds; i++) {
    await semaphore.acquire();
    await Promise.resolve();
    semaphore.release();
  }
}

async function enter(semaphore: BareSemaphore): Promise<void> {
  await semaphore.acquire();
}

async function pause(): Promise<void> {
  await Promise.resolve();
}

async function leave(semaphore: BareSemaphore): Promise<void> {
  semaphore.release();
}

async function workerWithHelpers(semaphore: BareSemaphore, rounds: number): Promise<void> {
  for (let i = 0; i < rounds; i++) {
    await enter(semaphore);
    await pause();
    await leave(semaphore);
  }
}

async function start({ tasks, rounds, permits }: Workload, program = worker): Promise<void> {
  const semaphore = new BareSemaphore(permits);
  await Promise.all(Array.from({ length: tasks }, () => program(semaphore, rounds)));
}

async function park({ tasks, permits }: Workload, whenParked: () => void): Promise<void> {
  const semaphore = new BareSemaphore(permits);
  await semaphore.acquire();
  const started = Array.from({ length: tasks }, () => worker(semaphore, 1));
  whenParked();
  semaphore.release();
  await Promise.all(started);
}

export const plainPromises: Subject = {
  rounds: (workload) => start(workload),
  helpers: (workload) => start(workload, workerWithHelpers),
  crowd: (workload) => start(workload),
  parked: park,
};
