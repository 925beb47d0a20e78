import {
  acquireSemaphore,
  completePromise,
  createPromise,
  createSemaphore,
  delay,
  failPromise,
  gather,
  log,
  now,
  type Program,
  race,
  releaseSemaphore,
  simulate,
  spawn,
  type Task,
  tryCatch,
  wait,
} from "slotkeeper/effects";
import { describe, expect, it } from "vitest";

function* after<T>(ms: number, value: T): Program<T> {
  yield* delay(ms);
  yield* log(`${String(value)} ended`);
  return value;
}

function* failAfter(ms: number, message: string): Program<never> {
  yield* delay(ms);
  throw new Error(message);
}

describe("wait", () => {
  it("gives a task's or future's result, before and after it has one", () => {
    const { value } = simulate(function* () {
      const task = yield* spawn(after(5, "task"));
      const promise = yield* createPromise<string>();
      yield* spawn(function* () {
        yield* delay(10);
        yield* completePromise(promise, "future");
      });
      return [yield* wait(task), yield* wait(task), yield* wait(promise.future), yield* wait(promise.future)];
    });
    expect(value).toEqual(["task", "task", "future", "future"]);
  });

  it("throws the task's error, the same one to every waiter", () => {
    const { value } = simulate(function* () {
      const task = yield* spawn(failAfter(5, "boom"));
      const early = yield* spawn(tryCatch(wait(task)));
      yield* delay(10);
      return [yield* wait(early), yield* tryCatch(wait(task))];
    });
    const [early, late] = value as { error: Error }[];
    expect(early?.error.message).toBe("boom");
    expect(late?.error).toBe(early?.error);
  });

  it("for oneself, for no task, or for a task of another run is a TypeError", () => {
    const stranger = simulate(spawn(now())).value;
    const { value } = simulate(function* () {
      const own: Task<unknown> = yield* spawn(function* () {
        return yield* tryCatch(wait(own));
      });
      return [yield* wait(own), yield* tryCatch(wait(stranger)), yield* tryCatch(wait(7 as never))];
    });
    for (const outcome of value) expect(outcome).toMatchObject({ ok: false, error: expect.any(TypeError) });
  });
});

describe("gather", () => {
  it("gives the results in input order", () => {
    const { value, now: end } = simulate(function* () {
      return yield* gather(
        yield* spawn(after(30, "slow")),
        yield* spawn(after(10, "fast")),
        yield* spawn(after(20, "mid")),
      );
    });
    expect(value).toEqual(["slow", "fast", "mid"]);
    expect(end).toBe(30);
  });

  it("of nothing is an empty list", () => {
    expect(simulate(gather()).value).toEqual([]);
  });

  it("takes an array or a set in place of arguments, and more items than arguments can be", () => {
    const count = 200_000;
    const { value } = simulate(function* () {
      const promise = yield* createPromise<number>();
      const waits = Array.from({ length: count }, () => wait(promise.future));
      yield* completePromise(promise, 7);
      const many = yield* gather(waits);
      const task = yield* spawn(after(5, "task"));
      return [many.length, many.at(-1), yield* gather(new Set([task])), yield* gather([]), yield* race([task])];
    });
    expect(value).toEqual([count, 7, ["task"], [], "task"]);
  });

  it("takes tasks, futures, wait(t) and other effects, settled or not", () => {
    const { value } = simulate(function* () {
      const ended = yield* spawn(after(0, "ended"));
      yield* delay(1);
      const promise = yield* createPromise<number>();
      yield* completePromise(promise, 7);
      const task = yield* spawn(after(5, "task"));
      return yield* gather(ended, promise.future, wait(task), wait(promise.future), now(), gather(task), task);
    });
    expect(value).toEqual(["ended", 7, "task", 7, 1, ["task"], "task"]);
  });

  it("fails fast with the first failure; the siblings go on", () => {
    const { value, log: lines } = simulate(function* () {
      const slow = yield* spawn(after(30, "slow"));
      const outcome = yield* tryCatch(
        gather(slow, yield* spawn(failAfter(20, "second")), yield* spawn(failAfter(10, "first"))),
      );
      const failedAt = yield* now();
      yield* wait(slow);
      yield* delay(1);
      return { outcome, failedAt };
    });
    expect(value).toEqual({ outcome: { ok: false, error: new Error("first") }, failedAt: 10 });
    expect(lines).toEqual(["slow ended"]);
  });

  it("fails at once for a task that failed before", () => {
    const { value } = simulate(function* () {
      const failed = yield* spawn(failAfter(1, "before"));
      const slow = yield* spawn(after(50, "slow"));
      yield* delay(5);
      return [yield* tryCatch(gather(slow, failed)), yield* now()];
    });
    expect(value).toEqual([{ ok: false, error: new Error("before") }, 5]);
  });

  it("of effects that acquire gives the permits to the task that gathers", () => {
    const { permitsLeaked, value } = simulate(function* () {
      const a = yield* createSemaphore(1);
      const b = yield* createSemaphore(2);
      yield* gather(acquireSemaphore(a), acquireSemaphore(b), acquireSemaphore(b));
      yield* releaseSemaphore(a);
      yield* releaseSemaphore(b);
      yield* releaseSemaphore(b);
      return "released";
    });
    expect(value).toBe("released");
    expect(permitsLeaked).toEqual([]);
  });

  it("refuses anything else before it starts anything", () => {
    const { value, log: lines } = simulate(function* () {
      const outcome = yield* tryCatch(gather(log("never"), (function* () {})() as never));
      yield* delay(1);
      return outcome;
    });
    expect(lines).toEqual([]);
    expect(value).toMatchObject({ ok: false, error: expect.any(TypeError) });
    expect((value as { error: Error }).error.message).toMatch(
      /^Expected item 1 of gather to be a task, a future or an effect/,
    );
  });
});

describe("race", () => {
  it("is won by the first to end, with its value; the losers go on", () => {
    const { value, log: lines } = simulate(function* () {
      const slow = yield* spawn(after(20, "slow"));
      const winner = yield* race(slow, yield* spawn(after(10, "fast")));
      const wonAt = yield* now();
      yield* wait(slow);
      return { winner, wonAt };
    });
    expect(value).toEqual({ winner: "fast", wonAt: 10 });
    expect(lines).toEqual(["fast ended", "slow ended"]);
  });

  it("is lost to an error that comes first", () => {
    const { value } = simulate(function* () {
      return yield* tryCatch(race(wait(yield* spawn(failAfter(5, "boom"))), delay(10)));
    });
    expect(value).toEqual({ ok: false, error: new Error("boom") });
  });

  it("takes futures and effects, and the first in input order of those that ended before", () => {
    const { value } = simulate(function* () {
      const promise = yield* createPromise<string>();
      const failed = yield* createPromise<string>();
      yield* completePromise(promise, "future");
      yield* failPromise(failed, new Error("failed"));
      return yield* race(delay(5), promise.future, failed.future);
    });
    expect(value).toBe("future");
  });

  it("of nothing is a RangeError at the yield", () => {
    const { value } = simulate(tryCatch(race()));
    expect(value).toMatchObject({ ok: false, error: expect.any(RangeError) });
  });

  it("leaves no sleeping loser behind in the list of tasks left over", () => {
    const { leftOver, now: end } = simulate(function* () {
      return yield* race(delay(1_000), delay(5));
    });
    expect({ leftOver, end }).toEqual({ leftOver: [], end: 5 });
  });
});
