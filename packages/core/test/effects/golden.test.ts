import {
  acquireSemaphore,
  createSemaphore,
  delay,
  gather,
  log,
  now,
  type Program,
  releaseSemaphore,
  run,
  type SemaphoreHandle,
  simulate,
  spawn,
  type Task,
  wait,
} from "slotkeeper/effects";
import { FakeClock } from "slotkeeper/testing";
import { describe, expect, it } from "vitest";

interface Visit {
  readonly worker: number;
  readonly at: number;
}

function* worker(semaphore: SemaphoreHandle, id: number, visits: Visit[], inside: { now: number; most: number }) {
  yield* acquireSemaphore(semaphore);
  try {
    visits.push({ worker: id, at: yield* now() });
    inside.most = Math.max(inside.most, ++inside.now);
    yield* log(`Worker ${id} in critical section`);
    yield* delay(100);
    inside.now--;
    return `result-${id}`;
  } finally {
    yield* releaseSemaphore(semaphore);
  }
}

function* tenWorkers(visits: Visit[], inside: { now: number; most: number }): Program<string[]> {
  const semaphore = yield* createSemaphore(3);
  const tasks: Task<string>[] = [];
  for (let i = 0; i < 10; i++) tasks.push(yield* spawn(worker(semaphore, i, visits, inside)));
  return yield* gather(...tasks.map((task) => wait(task)));
}

const expectedVisits = [0, 0, 0, 100, 100, 100, 200, 200, 200, 300].map((at, worker) => ({ worker, at }));
const expectedResults = Array.from({ length: 10 }, (_, i) => `result-${i}`);

describe("the golden case: ten workers, three permits, 100 ms each", () => {
  it("starts three workers every 100 ms, in order, and ends at 400 with the results in order", () => {
    const visits: Visit[] = [];
    const inside = { now: 0, most: 0 };
    const result = simulate(tenWorkers(visits, inside));
    expect(visits).toEqual(expectedVisits);
    expect(inside).toEqual({ now: 0, most: 3 });
    expect(result).toMatchObject({ value: expectedResults, now: 400, permitsLeaked: [], leftOver: [] });
    expect(result.log).toEqual(Array.from({ length: 10 }, (_, i) => `Worker ${i} in critical section`));
  });

  it("does the same under run, on a clock", async () => {
    const clock = new FakeClock();
    const visits: Visit[] = [];
    const inside = { now: 0, most: 0 };
    const results = run(tenWorkers(visits, inside), { clock });
    clock.advance(400);
    expect(await results).toEqual(expectedResults);
    expect(visits).toEqual(expectedVisits);
    expect(inside.most).toBe(3);
    expect(clock.pending).toBe(0);
  });

  it("never has more than three inside under any of 200 seeds", () => {
    for (let seed = 0; seed < 200; seed++) {
      const inside = { now: 0, most: 0 };
      const result = simulate(tenWorkers([], inside), { seed });
      expect(result).toMatchObject({ value: expectedResults, now: 400 });
      expect(inside).toEqual({ now: 0, most: 3 });
    }
  });
});

describe("the seed's second example", () => {
  function* criticalSection(lock: SemaphoreHandle, name: string) {
    yield* acquireSemaphore(lock);
    try {
      yield* log(`${name}: entered critical section`);
      yield* delay(10);
      yield* log(`${name}: leaves`);
    } finally {
      yield* releaseSemaphore(lock);
    }
  }

  it("uses a binary semaphore as a mutex", () => {
    const { log: lines } = simulate(function* () {
      const lock = yield* createSemaphore(1);
      const a = yield* spawn(criticalSection(lock, "A"));
      const b = yield* spawn(criticalSection(lock, "B"));
      yield* gather(wait(a), wait(b));
    });
    expect(lines).toEqual(["A: entered critical section", "A: leaves", "B: entered critical section", "B: leaves"]);
  });
});
