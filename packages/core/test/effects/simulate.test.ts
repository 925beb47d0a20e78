import {
  acquireSemaphore,
  createSemaphore,
  delay,
  fromPromise,
  gather,
  log,
  now,
  PRIORITY_HIGH,
  type Program,
  releaseSemaphore,
  StepLimitError,
  simulate,
  simulateAsync,
  spawn,
  type Task,
} from "slotkeeper/effects";
import { describe, expect, it } from "vitest";

function* racers(count: number, rounds: number): Program<void> {
  const semaphore = yield* createSemaphore(2);
  const tasks: Task<void>[] = [];
  for (let id = 0; id < count; id++) {
    tasks.push(
      yield* spawn(function* () {
        for (let round = 0; round < rounds; round++) {
          yield* acquireSemaphore(semaphore);
          yield* log(`${id}.${round} at ${yield* now()}`);
          yield* delay(round % 2);
          yield* releaseSemaphore(semaphore);
        }
      }),
    );
  }
  yield* gather(...tasks);
}

describe("simulate", () => {
  it("jumps to the next timer when nothing can run: an hour takes no time", () => {
    const { now: end, steps } = simulate(function* () {
      for (let minute = 0; minute < 60; minute++) yield* delay(60_000);
    });
    expect(end).toBe(3_600_000);
    expect(steps).toBe(60);
  });

  it("fires timers of one instant in the order they were set, however they came to be due then", () => {
    const { log: lines } = simulate(function* () {
      function* at(name: string, ...delays: number[]): Program<void> {
        for (const ms of delays) yield* delay(ms);
        yield* log(name);
      }
      yield* gather(
        yield* spawn(at("set first", 10)),
        yield* spawn(at("set last", 4, 3, 3)),
        yield* spawn(at("set second", 10)),
        yield* spawn(at("set third", 4, 6)),
        yield* spawn(at("early", 9)),
      );
    });
    expect(lines).toEqual(["early", "set first", "set second", "set third", "set last"]);
  });

  it("gives the same log for the same seed, and different ones for different seeds", () => {
    const logs = Array.from({ length: 50 }, (_, seed) => simulate(racers(6, 4), { seed }).log);
    for (const [seed, lines] of logs.entries()) expect(simulate(racers(6, 4), { seed }).log).toEqual(lines);
    expect(new Set(logs.map((lines) => lines.join())).size).toBeGreaterThan(40);
  });

  it("without a seed is always the same run", () => {
    expect(simulate(racers(6, 4))).toEqual(simulate(racers(6, 4)));
  });

  it("keeps priorities under every seed", () => {
    for (let seed = 0; seed < 50; seed++) {
      const { log: lines } = simulate(
        function* () {
          yield* spawn(
            function* () {
              yield* spawn(log("normal"));
              yield* spawn(log("normal"));
              yield* spawn(log("high"), { priority: PRIORITY_HIGH });
            },
            { priority: PRIORITY_HIGH },
          );
          yield* delay(1);
        },
        { seed },
      );
      expect(lines).toEqual(["high", "normal", "normal"]);
    }
  });

  it("stops after maxSteps, even inside a task that never parks and catches everything", () => {
    function* forever(): Program<void> {
      for (;;) {
        try {
          yield* now();
        } catch {
          // It must not be able to catch the end of the simulation.
        }
      }
    }
    expect(() => simulate(forever, { maxSteps: 1_000 })).toThrow(StepLimitError);
    expect(() => simulate(forever, { maxSteps: 1_000 })).toThrow(/more than 1000 steps.*"root"/);
    expect(() =>
      simulate(
        function* () {
          for (;;) yield delay(0);
        },
        { maxSteps: 1_000 },
      ),
    ).toThrow(StepLimitError);
  });

  it("lets a run of exactly maxSteps end", () => {
    expect(simulate(now(), { maxSteps: 1 })).toMatchObject({ steps: 1 });
  });

  it("nests: a task may run a simulation of its own", () => {
    const { value } = simulate(function* () {
      yield* delay(5);
      const inner = simulate(function* () {
        yield* delay(100);
        return yield* now();
      });
      return [inner.value, yield* now()];
    });
    expect(value).toEqual([100, 5]);
  });

  it.each([
    [{ seed: 1.5 }, "seed"],
    [{ maxSteps: 0 }, "maxSteps"],
    [{ sede: 1 }, "Unknown option `sede`"],
    [{ seed: 1, replay: [] }, "`seed` or `replay`"],
    [5, "an object"],
  ])("refuses the options %j", (options, hint) => {
    expect(() => simulate(now(), options as never)).toThrow(/^(Expected|Unknown)/);
    expect(() => simulate(now(), options as never)).toThrow(hint);
  });

  it("refuses what is no program", () => {
    expect(() => simulate(5 as never)).toThrow(
      "Expected `program` to be a generator, a function that returns one, or an effect, got 5",
    );
  });

  it("takes a generator that is not the language's own", () => {
    const effects = [log("a"), delay(5), log("b")];
    const handMade = {
      position: 0,
      next() {
        const value = effects[this.position++];
        return value === undefined ? { done: true, value: "end" } : { done: false, value };
      },
      return: (value: string) => ({ done: true, value }),
      throw(error: unknown) {
        throw error;
      },
      [Symbol.iterator]() {
        return this;
      },
    };
    expect(simulate(handMade as never)).toMatchObject({ value: "end", now: 5, log: ["a", "b"] });
  });
});

describe("simulateAsync", () => {
  it("awaits real promises, in virtual time", async () => {
    const { value, now: end } = await simulateAsync((clock) =>
      (function* () {
        const slept = fromPromise(
          () => new Promise<string>((resolve) => clock.setTimer(() => resolve("slept"), 1_000)),
        );
        const [answer] = yield* gather(slept, delay(400));
        return [answer, yield* now()];
      })(),
    );
    expect(value).toEqual(["slept", 1_000]);
    expect(end).toBe(1_000);
  });

  it("clears timers, and finds a promise that nothing is left to settle", async () => {
    const stuck = simulateAsync((clock) =>
      (function* () {
        yield* fromPromise(
          new Promise(() => {
            clock.clearTimer(clock.setTimer(() => {}, 1_000));
          }),
        );
      })(),
    );
    await expect(stuck).rejects.toMatchObject({
      code: "DEADLOCK",
      parked: [{ task: { id: 0, name: "root" }, waitsFor: "a promise from outside" }],
    });
  });

  it("repeats a run by its seed", async () => {
    async function logOf(seed: number): Promise<readonly string[]> {
      const result = await simulateAsync(
        function* () {
          const tasks: Task<void>[] = [];
          for (const name of ["a", "b", "c", "d"]) {
            tasks.push(
              yield* spawn(function* () {
                for (let i = 0; i < 3; i++) {
                  yield* log(`${name}${i}`);
                  yield* fromPromise(Promise.resolve().then(() => i));
                }
              }),
            );
          }
          yield* gather(...tasks);
        },
        { seed },
      );
      return result.log;
    }
    const logs = new Set<string>();
    for (let seed = 0; seed < 20; seed++) {
      const lines = await logOf(seed);
      expect(await logOf(seed)).toEqual(lines);
      logs.add(lines.join());
    }
    expect(logs.size).toBeGreaterThan(10);
  });

  it("refuses options it does not have", async () => {
    await expect(simulateAsync(now(), { resolver: () => 1 } as never)).rejects.toThrow("Unknown option `resolver`");
  });
});
