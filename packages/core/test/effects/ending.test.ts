import {
  acquireSemaphore,
  cancel,
  createSemaphore,
  delay,
  gather,
  log,
  type Program,
  releaseSemaphore,
  run,
  simulate,
  spawn,
  tryCatch,
  wait,
} from "slotkeeper/effects";
import { describe, expect, it } from "vitest";

function* fail(message: string): Program<never> {
  yield* delay(1);
  throw new Error(message);
}

describe("an unobserved task failure", () => {
  it("fails the run at its end, with that error", async () => {
    const lines: string[] = [];
    function* program(): Program<string> {
      yield* spawn(fail("unobserved"));
      yield* delay(10);
      yield* log("root went on");
      return "fine";
    }
    expect(() => simulate(program, { onLog: (message) => lines.push(message) })).toThrow("unobserved");
    expect(lines).toEqual(["root went on"]);
    await expect(run(program)).rejects.toThrow("unobserved");
  });

  it("of several tasks fails the run with all of them", () => {
    function* program(): Program<void> {
      yield* spawn(fail("one"));
      yield* spawn(fail("two"));
      yield* delay(10);
    }
    expect(() => simulate(program)).toThrow(AggregateError);
    expect(() => simulate(program)).toThrow("2 tasks failed, and no task waited for them");
  });

  it("is reported to onUnhandled instead, if that is given", async () => {
    function* program(): Program<string> {
      yield* spawn(fail("unobserved"), { name: "loser" });
      yield* delay(10);
      return "fine";
    }
    const reports: unknown[] = [];
    const onUnhandled = (error: unknown, task: unknown): void => {
      reports.push([error, task]);
      throw new Error("a broken observer changes nothing");
    };
    expect(simulate(program, { onUnhandled }).value).toBe("fine");
    expect(await run(program, { onUnhandled })).toBe("fine");
    const expected = [new Error("unobserved"), { id: 1, name: "loser" }];
    expect(reports).toEqual([expected, expected]);
  });

  it("is none if a task waited for it, before or after, by wait, gather or race", () => {
    const { value } = simulate(function* () {
      const before = yield* spawn(fail("a"));
      const after = yield* spawn(fail("b"));
      const gathered = [yield* spawn(fail("c")), yield* spawn(fail("d"))];
      const watcher = yield* spawn(tryCatch(wait(before)));
      yield* tryCatch(gather(...gathered));
      yield* delay(5);
      yield* tryCatch(wait(after));
      yield* wait(watcher);
      return "fine";
    });
    expect(value).toBe("fine");
  });

  it("does not hide the root's own", () => {
    expect(() =>
      simulate(function* () {
        yield* spawn(fail("child"));
        yield* delay(5);
        throw new Error("root");
      }),
    ).toThrow("root");
  });
});

describe("the end of the root", () => {
  it("ends the run: tasks left over are cancelled, their finally blocks run, and they are listed", () => {
    const {
      value,
      leftOver,
      log: lines,
      now,
    } = simulate(function* () {
      yield* spawn(
        function* () {
          try {
            yield* delay(1_000);
          } finally {
            yield* delay(5);
            yield* log("cleaned up");
          }
        },
        { name: "worker" },
      );
      const ended = yield* spawn(delay(1), { name: "ended" });
      yield* wait(ended);
      return "done";
    });
    expect({ value, leftOver, lines, now }).toEqual({
      value: "done",
      leftOver: [{ id: 1, name: "worker" }],
      lines: ["cleaned up"],
      now: 6,
    });
  });

  it("by a throw does the same, and the run fails with it", () => {
    const lines: string[] = [];
    expect(() =>
      simulate(
        function* () {
          yield* spawn(function* () {
            try {
              yield* delay(1_000);
            } finally {
              yield* log("cleaned up");
            }
          });
          yield* fail("root");
        },
        { onLog: (message) => lines.push(message) },
      ),
    ).toThrow("root");
    expect(lines).toEqual(["cleaned up"]);
  });

  it("lets finally blocks spawn and wait for tasks of their own", () => {
    const { log: lines } = simulate(function* () {
      yield* spawn(function* () {
        try {
          yield* delay(1_000);
        } finally {
          const cleaner = yield* spawn(function* () {
            yield* delay(5);
            yield* log("cleaner done");
          });
          yield* wait(cleaner);
        }
      });
      yield* delay(1);
    });
    expect(lines).toEqual(["cleaner done"]);
  });

  it("drops daemons where they stand, unlisted, once no task needs them", () => {
    const {
      leftOver,
      log: lines,
      now,
    } = simulate(function* () {
      const semaphore = yield* createSemaphore(1);
      yield* spawn(
        function* () {
          try {
            yield* acquireSemaphore(semaphore);
            yield* delay(3);
            yield* releaseSemaphore(semaphore);
            for (;;) yield* delay(100);
          } finally {
            yield* log("a daemon is not unwound");
          }
        },
        { daemon: true },
      );
      yield* spawn(
        function* () {
          try {
            yield* delay(1_000);
          } finally {
            yield* acquireSemaphore(semaphore);
            yield* log("the daemon served the unwinding");
            yield* releaseSemaphore(semaphore);
          }
        },
        { name: "worker" },
      );
      yield* delay(1);
    });
    expect(leftOver).toEqual([{ id: 2, name: "worker" }]);
    expect(lines).toEqual(["the daemon served the unwinding"]);
    expect(now).toBe(3);
  });
});

describe("a permit that was not given back", () => {
  it("is listed with the task that failed, ended or was cancelled", () => {
    const { permitsLeaked } = simulate(function* () {
      const semaphore = yield* createSemaphore(5, { name: "five" });
      function* take(permits: number, thenFail: boolean, sleepMs: number): Program<void> {
        for (let i = 0; i < permits; i++) yield* acquireSemaphore(semaphore);
        yield* delay(sleepMs);
        if (thenFail) throw new Error("failed");
      }
      const ended = yield* spawn(take(1, false, 1), { name: "ended" });
      const failed = yield* spawn(take(2, true, 1), { name: "failed" });
      const cancelled = yield* spawn(take(1, false, 1_000), { name: "cancelled" });
      yield* wait(ended);
      yield* tryCatch(wait(failed));
      yield* cancel(cancelled);
      yield* delay(1);
    });
    expect(permitsLeaked).toEqual([
      { semaphore: { id: 1, name: "five" }, task: { id: 1, name: "ended" }, permits: 1 },
      { semaphore: { id: 1, name: "five" }, task: { id: 2, name: "failed" }, permits: 2 },
      { semaphore: { id: 1, name: "five" }, task: { id: 3, name: "cancelled" }, permits: 1 },
    ]);
  });

  it("by the root is listed too; one that another task gave back is not", () => {
    const { permitsLeaked } = simulate(function* () {
      const kept = yield* createSemaphore(1);
      const handedOver = yield* createSemaphore(1);
      yield* acquireSemaphore(kept);
      const taker = yield* spawn(acquireSemaphore(handedOver));
      yield* wait(taker);
      yield* releaseSemaphore(handedOver);
    });
    expect(permitsLeaked.map(({ semaphore, task }) => [semaphore.id, task.name])).toEqual([[1, "root"]]);
  });
});
