import {
  acquireSemaphore,
  createSemaphore,
  delay,
  type FailedRun,
  fromPromise,
  log,
  now,
  type Program,
  run,
  type SimulationResult,
  simulate,
  spawn,
  TaskCancelledError,
  tryCatch,
  wait,
} from "slotkeeper/effects";
import { FakeClock, settled } from "slotkeeper/testing";
import { describe, expect, it } from "vitest";

describe("run", () => {
  it("starts before it returns, sleeps on one host timer, and leaves none", async () => {
    const clock = new FakeClock(1_000);
    const lines: string[] = [];
    const result = run(
      function* () {
        yield* log(`start at ${yield* now()}`);
        for (const ms of [30, 10, 20]) {
          yield* spawn(function* () {
            yield* delay(ms);
            yield* log(`${ms} at ${yield* now()}`);
          });
        }
        yield* delay(40);
        return "end";
      },
      { clock, onLog: (message, { at, task }) => lines.push(`${message} (${at}, ${task.name})`) },
    );
    expect(lines).toEqual(["start at 1000 (1000, root)"]);
    expect(clock.pending).toBe(1);
    clock.advance(40);
    expect(await result).toBe("end");
    expect(lines.slice(1)).toEqual([
      "10 at 1010 (1010, task-2)",
      "20 at 1020 (1020, task-3)",
      "30 at 1030 (1030, task-1)",
    ]);
    expect(clock.pending).toBe(0);
  });

  it("sets a longer timer anew as often as the host needs: hosts keep no more than 2^31 - 1 ms", async () => {
    const clock = new FakeClock();
    const delays: number[] = [];
    const watched = {
      now: () => clock.now(),
      setTimer: (callback: () => void, delayMs: number) => {
        delays.push(delayMs);
        return clock.setTimer(callback, delayMs);
      },
      clearTimer: (timer: unknown) => clock.clearTimer(timer),
    };
    const result = run(delay(5_000_000_000), { clock: watched });
    clock.advance(5_000_000_000);
    await result;
    expect(delays).toEqual([2_147_483_647, 2_147_483_647, 705_032_706]);
  });

  it("wakes a little late rather than early on a clock with fractions", async () => {
    const clock = new FakeClock(0.7);
    const result = run(
      function* () {
        const startedAt = yield* now();
        yield* delay(10);
        return (yield* now()) - startedAt;
      },
      { clock },
    );
    clock.advance(10);
    expect(await result).toBe(10);
  });

  it("really sleeps in real time", async () => {
    const tookMs = await run(function* () {
      const startedAt = yield* now();
      yield* delay(20);
      return (yield* now()) - startedAt;
    });
    expect(tookMs).toBeGreaterThanOrEqual(20);
  });

  it("does not starve the host: real timers and promises go on while a task is always ready", async () => {
    let isOver = false;
    setTimeout(() => {
      isOver = true;
    }, 5);
    const turns = await run(function* () {
      let count = 0;
      for (; !isOver; count++) yield* delay(0);
      return count;
    });
    expect(turns).toBeGreaterThan(0);
  });

  it("does not starve promises on a clock that stands still", async () => {
    let isOver = false;
    const result = run(
      function* () {
        yield* spawn(function* () {
          yield* fromPromise(Promise.resolve());
          isOver = true;
        });
        while (!isOver) yield* delay(0);
        return "seen";
      },
      { clock: new FakeClock() },
    );
    expect(await result).toBe("seen");
  });

  it("gives onEnd what simulate returns", async () => {
    const ends: unknown[] = [];
    await run(
      function* () {
        const semaphore = yield* createSemaphore(1);
        yield* acquireSemaphore(semaphore);
        yield* spawn(delay(1_000), { name: "left" });
        yield* log("hello");
        return 5;
      },
      { clock: new FakeClock(70), name: "main", onEnd: (end) => ends.push(end) },
    );
    expect(ends).toEqual([
      {
        value: 5,
        now: 70,
        log: ["hello"],
        steps: 4,
        permitsLeaked: [{ semaphore: { id: 1, name: undefined }, task: { id: 0, name: "main" }, permits: 1 }],
        leftOver: [{ id: 1, name: "left" }],
      },
    ]);
  });

  it("gives onEnd the error of a run that failed, and is not disturbed by a broken observer", async () => {
    let end: SimulationResult<unknown> | FailedRun | undefined;
    const failing = run(
      function* () {
        yield* log("before");
        throw new Error("no");
      },
      {
        onLog: () => {
          throw new Error("broken onLog");
        },
        onEnd: (given) => {
          end = given;
          throw new Error("broken onEnd");
        },
      },
    );
    await expect(failing).rejects.toThrow("no");
    expect(end).toMatchObject({ value: undefined, error: new Error("no"), log: ["before"] });
  });

  it.each([
    [{ sginal: 1 }, "Unknown option `sginal`"],
    [{ onLog: 1, clock: 2 }, "onLog"],
    [{ name: 5 }, "name"],
  ])("rejects for the options %j", async (options, hint) => {
    await expect(run(now(), options as never)).rejects.toThrow(TypeError);
    await expect(run(now(), options as never)).rejects.toThrow(hint);
  });

  it("refuses a generator that has run: it would end at once with nothing", async () => {
    const program = (function* (): Program<number> {
      return yield* now();
    })();
    await run(program);
    await expect(run(program)).rejects.toThrow("Expected `program` to be a generator that has not run");
    expect(() => simulate(program)).toThrow(TypeError);
    const twice = simulate(function* () {
      const child = (function* () {})();
      yield* spawn(child);
      return yield* tryCatch(spawn(child));
    });
    expect(twice.value).toMatchObject({ ok: false, error: expect.any(TypeError) });
  });

  it("rejects for what is no program", async () => {
    await expect(run({} as never)).rejects.toThrow(TypeError);
  });
});

describe("run with a signal", () => {
  function* sleeper(lines: string[]): Program<string> {
    try {
      yield* delay(60_000);
      return "slept";
    } catch (error) {
      lines.push(`${(error as Error).name}, cause: ${String((error as Error).cause)}`);
      throw error;
    } finally {
      yield* delay(5);
      lines.push("unwound");
    }
  }

  it("cancels every task when aborted, lets them unwind, and rejects with the signal's reason itself", async () => {
    const clock = new FakeClock();
    const controller = new AbortController();
    const lines: string[] = [];
    const reason = { because: "enough" };
    const result = run(
      function* () {
        const child = yield* spawn(sleeper(lines));
        return yield* wait(child);
      },
      { clock, signal: controller.signal },
    );
    result.catch(() => {});
    await clock.advanceAsync(10);
    controller.abort(reason);
    await settled();
    expect(lines).toEqual(["TaskCancelledError, cause: [object Object]"]);
    await clock.advanceAsync(5);
    await expect(result).rejects.toBe(reason);
    expect(lines.at(-1)).toBe("unwound");
    expect(clock.pending).toBe(0);
  });

  it("that is aborted already rejects without starting", async () => {
    const lines: string[] = [];
    const started = run(sleeper(lines), { signal: AbortSignal.abort("before") });
    await expect(started).rejects.toBe("before");
    expect(lines).toEqual([]);
  });

  it("resolves if the root swallows the cancellation and returns", async () => {
    const controller = new AbortController();
    const result = run(
      function* () {
        try {
          yield* delay(60_000);
        } catch (error) {
          return error instanceof TaskCancelledError ? "swallowed" : "other";
        }
        return "slept";
      },
      { signal: controller.signal },
    );
    controller.abort();
    expect(await result).toBe("swallowed");
  });

  it("leaves no listener behind", async () => {
    const { signal } = new AbortController();
    let listeners = 0;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners++;
      add(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners--;
      remove(...args);
    };
    await run(now(), { signal });
    expect(listeners).toBe(0);
  });
});
