import {
  acquireSemaphore,
  cancel,
  createSemaphore,
  DeadlockError,
  delay,
  log,
  now,
  releaseSemaphore,
  type SemaphoreHandle,
  simulate,
  spawn,
  type Task,
  TaskCancelledError,
  tryAcquireSemaphore,
  tryCatch,
  wait,
} from "slotkeeper/effects";
import { describe, expect, it } from "vitest";

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

describe("a task that got the error of a dead set", () => {
  it("is running: cancelling itself takes effect at its next yield, once", () => {
    const { value } = simulate(function* () {
      const semaphore = yield* createSemaphore(1);
      const seen: unknown[] = [];
      const self: Task<void> = yield* spawn(function* () {
        yield* acquireSemaphore(semaphore);
        const deadlock = yield* tryCatch(acquireSemaphore(semaphore));
        seen.push(!deadlock.ok && deadlock.error instanceof DeadlockError);
        yield* cancel(self);
        seen.push("after the cancel");
        try {
          yield* delay(0);
          seen.push("never");
        } finally {
          yield* releaseSemaphore(semaphore);
        }
      });
      const outcome = yield* tryCatch(wait(self));
      seen.push(!outcome.ok && outcome.error instanceof TaskCancelledError);
      return { seen, isFree: yield* tryAcquireSemaphore(semaphore) };
    });
    expect(value).toEqual({ seen: [true, "after the cancel", true], isFree: true });
  });
});
