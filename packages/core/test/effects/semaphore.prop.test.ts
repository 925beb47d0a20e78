import * as fc from "fast-check";
import {
  acquireSemaphore,
  cancel,
  createSemaphore,
  delay,
  now,
  type Program,
  releaseSemaphore,
  simulate,
  spawn,
  type Task,
  tryAcquireSemaphore,
  tryCatch,
  wait,
} from "slotkeeper/effects";
import { describe, expect, it } from "vitest";

interface User {
  readonly arriveAt: number;
  readonly holdMs: number;
  readonly timeoutMs: number | undefined;
  readonly cancelAt: number | undefined;
}

interface Stay {
  readonly user: number;
  readonly from: number;
  readonly to: number;
}

const user: fc.Arbitrary<User> = fc.record({
  arriveAt: fc.nat(20),
  holdMs: fc.nat(10),
  timeoutMs: fc.option(fc.integer({ min: 1, max: 15 }), { nil: undefined }),
  cancelAt: fc.option(fc.nat(30), { nil: undefined }),
});

/** What the real scheduler does with these users: who was inside when, and how many permits are free afterwards. */
function simulated(permits: number, users: readonly User[], seed: number | undefined): { stays: Stay[]; free: number } {
  const stays: Stay[] = [];
  const { value: free, permitsLeaked } = simulate(
    function* () {
      const semaphore = yield* createSemaphore(permits);
      function* use(id: number, { arriveAt, holdMs, timeoutMs }: User): Program<void> {
        yield* delay(arriveAt);
        yield* acquireSemaphore(semaphore, timeoutMs === undefined ? undefined : { timeoutMs });
        const from = yield* now();
        try {
          yield* delay(holdMs);
        } finally {
          stays.push({ user: id, from, to: yield* now() });
          yield* releaseSemaphore(semaphore);
        }
      }
      function* cancelLater(task: Task<void>, at: number): Program<void> {
        yield* delay(at);
        yield* cancel(task);
      }
      const tasks: Task<void>[] = [];
      for (const [id, each] of users.entries()) {
        const task = yield* spawn(use(id, each));
        tasks.push(task);
        if (each.cancelAt !== undefined) yield* spawn(cancelLater(task, each.cancelAt), { daemon: true });
      }
      for (const task of tasks) yield* tryCatch(wait(task));
      let count = 0;
      while (yield* tryAcquireSemaphore(semaphore)) count++;
      for (let i = 0; i < count; i++) yield* releaseSemaphore(semaphore);
      return count;
    },
    seed === undefined ? {} : { seed },
  );
  expect(permitsLeaked).toEqual([]);
  return { stays, free };
}

/** The tasks inside at each moment at which a task enters. */
function mostInside(stays: readonly Stay[]): number {
  const edges = stays.flatMap(({ from, to }) =>
    to > from
      ? [
          { at: from, by: 1 },
          { at: to, by: -1 },
        ]
      : [],
  );
  let inside = 0;
  let most = 0;
  for (const { by } of edges.sort((a, b) => a.at - b.at || a.by - b.by)) most = Math.max(most, (inside += by));
  return most;
}

describe("the semaphore, for any users and any seed", () => {
  it("never lets more in than it has permits, and has them all back at the end (PERMIT1)", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 4 }),
        fc.array(user, { maxLength: 12 }),
        fc.option(fc.nat(1_000_000), { nil: undefined }),
        (permits, users, seed) => {
          const { stays, free } = simulated(permits, users, seed);
          expect(mostInside(stays)).toBeLessThanOrEqual(permits);
          expect(free).toBe(permits);
        },
      ),
      { numRuns: 200 },
    );
  });

  it("serves patient users in the order of arrival, and idles no permit while one waits (PERMIT2, PERMIT3)", () => {
    const patient = fc.record({ arriveAt: fc.nat(20), holdMs: fc.integer({ min: 1, max: 10 }) });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), fc.array(patient, { maxLength: 12 }), (permits, given) => {
        const users = given.map((each) => ({ ...each, timeoutMs: undefined, cancelAt: undefined }));
        const { stays } = simulated(permits, users, undefined);
        // The textbook model: each takes the permit that is free first, in the order of arrival.
        const freeAt = new Array<number>(permits).fill(0);
        const order = users.map((each, id) => ({ ...each, id })).sort((a, b) => a.arriveAt - b.arriveAt || a.id - b.id);
        const expected = order.map(({ id, arriveAt, holdMs }) => {
          freeAt.sort((a, b) => a - b);
          const from = Math.max(arriveAt, freeAt[0] as number);
          freeAt[0] = from + holdMs;
          return { user: id, from, to: from + holdMs };
        });
        const byUser = (a: Stay, b: Stay): number => a.user - b.user;
        expect(stays.sort(byUser)).toEqual(expected.sort(byUser));
      }),
      { numRuns: 500 },
    );
  });
});
