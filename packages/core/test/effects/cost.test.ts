import "../work-done.ts";
import { createHook } from "node:async_hooks";
import {
  acquireSemaphore,
  createSemaphore,
  delay,
  log,
  now,
  type Program,
  releaseSemaphore,
  run,
  type SemaphoreHandle,
  simulate,
  spawn,
  type Task,
  tryAcquireSemaphore,
  wait,
} from "slotkeeper/effects";
import { describe, expect, it } from "vitest";
import { growthOf } from "../work-done.ts";

/** How many promises are made while `work` runs. */
function promisesDuring(work: () => void): number {
  let count = 0;
  const hook = createHook({
    init: (_, type) => {
      if (type === "PROMISE") count++;
    },
  });
  hook.enable();
  work();
  hook.disable();
  return count;
}

function* user(semaphore: SemaphoreHandle): Program<void> {
  yield* acquireSemaphore(semaphore);
  yield* delay(0);
  yield* releaseSemaphore(semaphore);
}

describe("cost", () => {
  it("counts promises at all: the guard can fail", () => {
    expect(promisesDuring(() => void Promise.resolve())).toBe(1);
  });

  it("is no promise for a step that does not park, nor for one that parks on a semaphore, a sleep or a task", () => {
    const count = promisesDuring(() =>
      simulate(function* () {
        const semaphore = yield* createSemaphore(1);
        for (let i = 0; i < 1_000; i++) {
          yield* acquireSemaphore(semaphore);
          yield* now();
          yield* log("x");
          yield* tryAcquireSemaphore(semaphore);
          yield* releaseSemaphore(semaphore);
          yield* wait(yield* spawn(user(semaphore)));
          yield* delay(1);
        }
      }),
    );
    expect(count).toBe(0);
  });

  it("is one promise for a whole run, however many steps it takes", () => {
    let result: Promise<unknown> | undefined;
    const count = promisesDuring(() => {
      result = run(function* () {
        const semaphore = yield* createSemaphore(1);
        for (let i = 0; i < 5_000; i++) {
          yield* acquireSemaphore(semaphore);
          yield* releaseSemaphore(semaphore);
        }
      });
    });
    expect(count).toBe(1);
    return result;
  });

  /** A number of tasks take turns at one semaphore; each does `extra` while it holds a permit. */
  function crowd(tasks: number, extra: () => void = () => {}): number {
    let done = 0;
    simulate(function* () {
      const semaphore = yield* createSemaphore(10);
      let last: Task<void> | undefined;
      for (let i = 0; i < tasks; i++) {
        last = yield* spawn(
          (function* () {
            yield* user(semaphore);
            extra();
            done++;
          })(),
        );
      }
      yield* wait(last as Task<void>);
      yield* delay(1);
    });
    return done;
  }

  it("per task is the same for 50,000 tasks over one semaphore as for 2,500", async () => {
    const growth = await growthOf(2_500, (tasks) => expect(crowd(tasks)).toBe(tasks));
    expect(growth).toBeLessThan(1.2);
  });

  it("that grows with the crowd is seen, in a built-in method as in a loop: the guard can fail", async () => {
    const queue: number[] = [];
    const scan = () => void queue.indexOf(queue.push(0));
    const loop = () => {
      const { length } = queue;
      for (let index = 0; index < length; index++) continue;
      queue.push(0);
    };
    for (const extra of [scan, loop]) {
      queue.length = 0;
      expect(await growthOf(500, (tasks) => crowd(tasks, extra))).toBeGreaterThan(2);
    }
  });
});
