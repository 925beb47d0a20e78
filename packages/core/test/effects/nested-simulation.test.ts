import {
  acquireSemaphore,
  createSemaphore,
  delay,
  log,
  now,
  type Program,
  releaseSemaphore,
  simulate,
  tryAcquireSemaphore,
} from "slotkeeper/effects";
import { describe, expect, it } from "vitest";

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
    } = simulate(function* () {
      const semaphore = yield* createSemaphore(1);
      yield* acquireSemaphore(semaphore);
      const nested = simulate(inner);
      yield* releaseSemaphore(semaphore);
      yield* log(`${nested.value} took ${nested.now}`);
      return yield* now();
    });
    expect({ value, lines, end }).toEqual({ value: 0, lines: ["inner took 1000"], end: 0 });
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
