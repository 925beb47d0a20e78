import {
  cancel,
  completePromise,
  createPromise,
  delay,
  failPromise,
  fromPromise,
  gather,
  log,
  now,
  type Program,
  PromiseSettledError,
  run,
  simulate,
  spawn,
  TaskCancelledError,
  tryCatch,
  wait,
} from "slotkeeper/effects";
import { FakeClock, settled } from "slotkeeper/testing";
import { describe, expect, it } from "vitest";

describe("createPromise", () => {
  it("is settled once: a second time throws PromiseSettledError, and the first result stands", () => {
    const { value } = simulate(function* () {
      const good = yield* createPromise<number>();
      yield* completePromise(good, 1);
      const bad = yield* createPromise<number>();
      yield* failPromise(bad, new Error("first"));
      return {
        again: [
          yield* tryCatch(completePromise(good, 2)),
          yield* tryCatch(failPromise(good, new Error("late"))),
          yield* tryCatch(completePromise(bad, 2)),
          yield* tryCatch(failPromise(bad, new Error("late"))),
        ],
        results: [yield* tryCatch(wait(good.future)), yield* tryCatch(wait(bad.future))],
      };
    });
    for (const outcome of value.again) {
      expect(outcome).toMatchObject({ ok: false, error: expect.any(PromiseSettledError) });
      expect(outcome).toMatchObject({ error: { code: "PROMISE_SETTLED" } });
    }
    expect(value.results).toEqual([
      { ok: true, value: 1 },
      { ok: false, error: new Error("first") },
    ]);
  });

  it("wakes all tasks that wait for the future, in order", () => {
    const { log: lines } = simulate(function* () {
      const promise = yield* createPromise<string>();
      const waiters = [];
      for (const name of ["a", "b", "c"]) {
        waiters.push(
          yield* spawn(function* (): Program<void> {
            yield* log(`${name} ${yield* wait(promise.future)}`);
          }),
        );
      }
      yield* delay(1);
      yield* completePromise(promise, "go");
      yield* gather(...waiters);
    });
    expect(lines).toEqual(["a go", "b go", "c go"]);
  });

  it("refuses to settle what is no promise of this run", () => {
    const stranger = simulate(createPromise<number>()).value;
    const { value } = simulate(function* () {
      return [yield* tryCatch(completePromise(stranger, 1)), yield* tryCatch(failPromise({} as never, 1))];
    });
    for (const outcome of value) expect(outcome).toMatchObject({ ok: false, error: expect.any(TypeError) });
  });
});

describe("fromPromise under run", () => {
  it("parks on a promise, or on what a function returns; other tasks go on", async () => {
    const lines: string[] = [];
    const value = await run(
      function* () {
        yield* spawn(log("other"));
        const plain = yield* fromPromise(Promise.resolve(1));
        const made = yield* fromPromise(async () => 2);
        const failed = yield* tryCatch(fromPromise(Promise.reject(new Error("outside"))));
        const misused = yield* tryCatch(fromPromise(5 as never));
        const threw = yield* tryCatch(
          fromPromise(() => {
            throw new Error("sync");
          }),
        );
        return { plain, made, failed, misused, threw };
      },
      { onLog: (message) => lines.push(message) },
    );
    expect(lines).toEqual(["other"]);
    expect(value).toMatchObject({ plain: 1, made: 2, failed: { error: new Error("outside") } });
    expect(value.misused).toMatchObject({ ok: false, error: expect.any(TypeError) });
    expect(value.threw).toEqual({ ok: false, error: new Error("sync") });
  });

  it("aborts the signal when the task is cancelled, and swallows what the promise does then", async () => {
    let signal: AbortSignal | undefined;
    const value = await run(function* () {
      const task = yield* spawn(
        fromPromise(
          (given) =>
            new Promise((_, reject) => {
              signal = given;
              given.addEventListener("abort", () => reject(new Error("stopped")));
            }),
        ),
      );
      yield* delay(0);
      expect(signal?.aborted).toBe(false);
      yield* cancel(task);
      return yield* tryCatch(wait(task));
    });
    expect(value).toMatchObject({ ok: false, error: expect.any(TaskCancelledError) });
    expect(signal?.aborted).toBe(true);
    expect(signal?.reason).toBeInstanceOf(TaskCancelledError);
    await settled();
  });

  it("is waited for at the end of the queue: a pending promise is no deadlock", async () => {
    const clock = new FakeClock();
    let resolve: ((value: string) => void) | undefined;
    const result = run(
      fromPromise(
        new Promise<string>((done) => {
          resolve = done;
        }),
      ),
      { clock },
    );
    await clock.advanceAsync(60_000);
    resolve?.("late");
    expect(await result).toBe("late");
  });
});

describe("fromPromise under simulate", () => {
  it("is refused at the yield", () => {
    const { value } = simulate(tryCatch(fromPromise(Promise.resolve(1))));
    expect(value).toMatchObject({ ok: false, error: expect.any(TypeError) });
    expect((value as { error: Error }).error.message).toContain("resolver");
  });

  it("is answered by a resolver: a value, a throw, or a program that takes virtual time", () => {
    const { value } = simulate(
      function* () {
        const plain = yield* fromPromise(Promise.resolve("real"), { label: "value" });
        const failed = yield* tryCatch(fromPromise(() => Promise.resolve("real"), { label: "throw" }));
        const slow = yield* fromPromise(() => Promise.resolve("real"), { label: "slow" });
        const promise = yield* tryCatch(fromPromise(() => Promise.resolve("real"), { label: "promise" }));
        return { plain, failed, slow, promise, at: yield* now() };
      },
      {
        resolver: ({ label, task }) => {
          if (label === "throw") throw new Error("simulated");
          if (label === "promise") return Promise.resolve();
          if (label !== "slow") return `${label} for ${task.name}`;
          return (function* () {
            yield* delay(250);
            return "took a while";
          })();
        },
      },
    );
    expect(value).toMatchObject({
      plain: "value for root",
      failed: { ok: false, error: new Error("simulated") },
      slow: "took a while",
      promise: { ok: false, error: expect.any(TypeError) },
      at: 250,
    });
  });
});
