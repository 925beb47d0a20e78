import {
  acquireSemaphore,
  cancel,
  completePromise,
  createPromise,
  createSemaphore,
  DeadlockError,
  delay,
  explore,
  exploreAsync,
  exploreAsyncOrThrow,
  exploreOrThrow,
  fromPromise,
  gather,
  log,
  type Program,
  type PromiseHandle,
  releaseSemaphore,
  simulate,
  spawn,
  type Task,
  tryCatch,
  wait,
} from "slotkeeper/effects";
import { describe, expect, it, vi } from "vitest";

/** A mutex whose waiter looks, then hesitates, then goes to sleep: a release in between wakes no task. */
function* lostWakeUp(): Program<void> {
  let isTaken = false;
  let sleeper: PromiseHandle<void> | undefined;
  function* lock(): Program<void> {
    while (isTaken) {
      yield* log("taken, going to sleep");
      yield* delay(0);
      sleeper = yield* createPromise<void>();
      yield* wait(sleeper.future);
      yield* log("woken");
    }
    isTaken = true;
  }
  function* unlock(): Program<void> {
    isTaken = false;
    if (sleeper === undefined) return;
    const woken = sleeper;
    sleeper = undefined;
    yield* completePromise(woken, undefined);
  }
  function* user(): Program<void> {
    yield* delay(0);
    yield* lock();
    yield* log("in");
    yield* delay(0);
    yield* delay(0);
    yield* unlock();
    yield* log("out");
  }
  yield* gather(yield* spawn(user(), { name: "a" }), yield* spawn(user(), { name: "b" }));
}

/** A semaphore that looks at the count, logs over the wire, and only then takes: two may see the last slot. */
function* doubleGrant(): Program<number> {
  let free = 1;
  let inside = 0;
  let most = 0;
  function* user(id: number): Program<void> {
    for (let i = 0; i < id; i++) yield* delay(0);
    while (free === 0) yield* delay(1);
    if (id % 2 === 1) yield* delay(0);
    free--;
    most = Math.max(most, ++inside);
    yield* log(`${id} in, ${inside} inside`);
    yield* delay(1);
    inside--;
    free++;
  }
  const tasks: Task<void>[] = [];
  for (let id = 0; id < 3; id++) tasks.push(yield* spawn(user(id), { name: `user ${id}` }));
  yield* gather(...tasks);
  return most;
}

const silent = (): void => {};

describe("explore", () => {
  it("finds a planted lost wake-up within 1,000 seeds, and replays it exactly", () => {
    const printed: string[] = [];
    const found = explore(lostWakeUp, { runs: 1_000, print: (report) => printed.push(report) });
    expect(found).toMatchObject({ ok: false, runs: 1_000 });
    expect(found.failures).toBeGreaterThan(0);
    expect(found.failure?.error).toBeInstanceOf(DeadlockError);
    expect(printed).toEqual([found.failure?.report]);
    expect(printed[0]).toContain(`Seed ${found.seed}: DeadlockError`);
    for (let i = 0; i < 3; i++)
      expect(() => simulate(lostWakeUp, { seed: found.seed as number })).toThrow(DeadlockError);
    const lines: string[] = [];
    const replay = found.failure?.replay as number[];
    expect(() => simulate(lostWakeUp, { replay, onLog: (message) => lines.push(message) })).toThrow(DeadlockError);
    expect(lines).toEqual(found.log);
    // The first goes in, the second goes to sleep too late.
    expect(found.log).toEqual(["in", "taken, going to sleep", "out"]);
  });

  it("finds a planted double grant within 1,000 seeds, and prints a minimal log", () => {
    const report = vi.spyOn(console, "log").mockImplementation(silent);
    const found = explore(doubleGrant, {
      runs: 1_000,
      check: ({ value }) => {
        if (value > 1) throw new Error(`${value} were inside`);
      },
    });
    expect(found).toMatchObject({ ok: false, error: new Error("2 were inside") });
    expect(report).toHaveBeenCalledExactlyOnceWith(found.failure?.report);
    expect(found.failure?.report).toMatch(/\d ms {2}user \d: \d in, 2 inside/);
    expect(found.log?.filter((line) => line.includes("2 inside"))).toHaveLength(1);
    expect(simulate(doubleGrant, { seed: found.seed as number }).value).toBe(2);
    const again = explore(doubleGrant, { runs: 1_000, print: silent, check: ({ value }) => value <= 1 });
    expect(again.failure).toMatchObject({ seed: found.seed, log: found.log, replay: found.failure?.replay });
  });

  it("finds nothing in the same program written with the semaphore", () => {
    function* correct(): Program<number> {
      const semaphore = yield* createSemaphore(1);
      let inside = 0;
      let most = 0;
      function* user(id: number): Program<void> {
        for (let i = 0; i < id; i++) yield* delay(0);
        yield* acquireSemaphore(semaphore);
        most = Math.max(most, ++inside);
        yield* delay(1);
        inside--;
        yield* releaseSemaphore(semaphore);
      }
      const tasks: Task<void>[] = [];
      for (let id = 0; id < 3; id++) tasks.push(yield* spawn(user(id)));
      yield* gather(...tasks);
      return most;
    }
    const printed: string[] = [];
    const found = explore(correct, {
      runs: 1_000,
      check: ({ value }) => value === 1,
      print: (line) => printed.push(line),
    });
    expect(found).toEqual({
      ok: true,
      runs: 1_000,
      failures: 0,
      failure: undefined,
      seed: undefined,
      log: undefined,
      error: undefined,
    });
    expect(printed).toEqual([]);
  });

  it("keeps the semaphore's promises under thousands of interleavings with cancellation and timeouts", () => {
    function* storm(): Program<{ most: number; free: number }> {
      const semaphore = yield* createSemaphore(2);
      let inside = 0;
      let most = 0;
      function* user(timeoutMs: number | undefined): Program<void> {
        yield* delay(0);
        yield* acquireSemaphore(semaphore, timeoutMs === undefined ? {} : { timeoutMs });
        try {
          most = Math.max(most, ++inside);
          yield* delay(1);
        } finally {
          inside--;
          yield* releaseSemaphore(semaphore);
        }
      }
      const tasks: Task<void>[] = [];
      for (let i = 0; i < 6; i++) tasks.push(yield* spawn(user(i % 3 === 0 ? 1 : undefined)));
      yield* spawn(cancel(tasks[1] as Task<void>));
      yield* spawn(function* () {
        yield* delay(1);
        yield* cancel(tasks[4] as Task<void>);
      });
      for (const [id, task] of tasks.entries()) {
        const outcome = yield* tryCatch(wait(task));
        if (!outcome.ok) yield* log(`${id} ${(outcome.error as Error).name}`);
      }
      let free = 0;
      for (; free < 2; free++) yield* acquireSemaphore(semaphore, { timeoutMs: 0 });
      yield* releaseSemaphore(semaphore);
      yield* releaseSemaphore(semaphore);
      return { most, free };
    }
    const allowed = ["0 AcquireTimeoutError", "3 AcquireTimeoutError", "1 TaskCancelledError", "4 TaskCancelledError"];
    const seen = new Set<string>();
    const found = explore(storm, {
      runs: 3_000,
      check: ({ value, permitsLeaked, log: lines }) => {
        for (const line of lines) seen.add(line);
        return (
          value.most === 2 &&
          value.free === 2 &&
          permitsLeaked.length === 0 &&
          lines.every((line) => allowed.includes(line))
        );
      },
    });
    expect(found.ok).toBe(true);
    expect([...seen].sort()).toEqual(allowed.sort());
  });

  it("counts a run that fails, or that a check complains about, and stops at maxSteps", () => {
    const throws = explore(
      // oxlint-disable-next-line require-yield -- it fails before it could
      function* (): Program<void> {
        throw new Error("always");
      },
      { runs: 3, print: silent },
    );
    expect(throws).toMatchObject({ ok: false, failures: 3, failure: { seed: 1, replay: [], log: [] } });
    const endless = explore(
      function* () {
        for (;;) yield* delay(0);
      },
      { runs: 2, maxSteps: 50, print: silent },
    );
    expect(endless.failure?.error).toMatchObject({ code: "STEP_LIMIT" });
  });

  it("starts from the given seed", () => {
    const found = explore(lostWakeUp, { runs: 500, seed: 5_000, print: silent });
    expect(found.seed).toBeGreaterThanOrEqual(5_000);
    expect(found.seed).toBeLessThan(5_500);
  });

  it.each([{ runs: 0 }, { check: 5 }, { run: 5 }])("refuses the options %j", (options) => {
    expect(() => explore(lostWakeUp, options as never)).toThrow(/^(Expected|Unknown)/);
  });

  it("refuses a generator: it can run only once", () => {
    expect(() => explore(lostWakeUp() as never)).toThrow(/Expected `program` to be a function/);
  });
});

describe("exploreAsync", () => {
  it("finds a hand-over that can be missed, in code written with promises", async () => {
    /** Marks the slot free and wakes the waiter a promise later: another task may take it in between. */
    function* brokenHandOver(): Program<number> {
      let isFree = true;
      let inside = 0;
      let most = 0;
      const waiters: (() => void)[] = [];
      const acquire = async (): Promise<void> => {
        if (!isFree) await new Promise<void>((resolve) => waiters.push(resolve));
        isFree = false;
      };
      const release = (): void => {
        isFree = true;
        waiters.shift()?.();
      };
      const tasks: Task<void>[] = [];
      for (let i = 0; i < 3; i++) {
        tasks.push(
          yield* spawn(function* () {
            for (let round = 0; round < 3; round++) {
              yield* delay(0);
              yield* fromPromise(acquire());
              most = Math.max(most, ++inside);
              yield* log(`${inside} inside`);
              yield* delay(0);
              inside--;
              release();
            }
          }),
        );
      }
      yield* gather(...tasks);
      return most;
    }
    const found = await exploreAsync(brokenHandOver, { runs: 500, check: ({ value }) => value === 1, print: silent });
    expect(found.ok).toBe(false);
    expect(found.log).toContain("2 inside");
    const again = await exploreAsync(brokenHandOver, { runs: 500, check: ({ value }) => value === 1, print: silent });
    expect(again.failure).toEqual(found.failure);
  });
});

describe("exploreOrThrow", () => {
  it("throws what explore only returns, with the report as its message and the error as its cause", async () => {
    const options = { runs: 500 };
    expect(() => exploreOrThrow(lostWakeUp, options)).toThrow(/Repeat the failing run with \{ seed: \d+ \}/);
    try {
      exploreOrThrow(lostWakeUp, options);
    } catch (error) {
      expect((error as Error).cause).toBeInstanceOf(DeadlockError);
    }
    const never = { runs: 3, check: () => false };
    await expect(exploreAsyncOrThrow(function* () {}, never)).rejects.toThrow("3 of 3 runs failed");
  });

  it("returns the exploration when nothing failed", () => {
    expect(exploreOrThrow(function* () {}, { runs: 3 })).toMatchObject({ ok: true, runs: 3, failures: 0 });
  });
});
