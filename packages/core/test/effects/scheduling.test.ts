import {
  acquireSemaphore,
  createSemaphore,
  delay,
  gather,
  log,
  now,
  PRIORITY_HIGH,
  PRIORITY_IDLE,
  PRIORITY_NORMAL,
  type Program,
  releaseSemaphore,
  simulate,
  spawn,
  tryCatch,
  wait,
} from "slotkeeper/effects";
import { describe, expect, it } from "vitest";

function* say(...messages: string[]): Program<void> {
  for (const message of messages) yield* log(message);
}

describe("the ready queue", () => {
  it("runs tasks of one priority in the order they became ready", () => {
    const { log: lines } = simulate(function* () {
      for (const name of ["a", "b", "c"]) yield* spawn(say(name));
      yield* delay(1);
    });
    expect(lines).toEqual(["a", "b", "c"]);
  });

  it("runs a higher priority before a lower one, whatever the order of spawning", () => {
    const { log: lines } = simulate(function* () {
      yield* spawn(
        function* () {
          yield* spawn(say("idle"), { priority: PRIORITY_IDLE });
          yield* spawn(say("normal"), { priority: PRIORITY_NORMAL });
          yield* spawn(say("high"), { priority: PRIORITY_HIGH });
          yield* spawn(say("between"), { priority: 15 });
          yield* log("spawner");
        },
        { priority: PRIORITY_HIGH },
      );
      yield* delay(1);
    });
    expect(lines).toEqual(["spawner", "high", "between", "normal", "idle"]);
  });

  it("names the priorities 0, 10 and 20", () => {
    expect([PRIORITY_IDLE, PRIORITY_NORMAL, PRIORITY_HIGH]).toEqual([0, 10, 20]);
  });

  it("lets a task run until it parks: steps that do not park switch to no other task", () => {
    const { log: lines } = simulate(function* () {
      const semaphore = yield* createSemaphore(1);
      yield* spawn(say("other"));
      yield* acquireSemaphore(semaphore);
      yield* releaseSemaphore(semaphore);
      yield* now();
      yield* log("still me");
      yield* delay(1);
    });
    expect(lines).toEqual(["still me", "other"]);
  });
});

describe("spawn", () => {
  it("queues the child and lets the spawner go on", () => {
    const { log: lines } = simulate(function* () {
      const child = yield* spawn(say("child"));
      yield* log("spawner");
      yield* wait(child);
    });
    expect(lines).toEqual(["spawner", "child"]);
  });

  it("switches to a child that outranks the spawner, which then joins the end of its own queue", () => {
    const { log: lines } = simulate(function* () {
      yield* spawn(say("queued before"));
      const child = yield* spawn(say("outranks"), { priority: PRIORITY_HIGH });
      yield* log("spawner");
      yield* wait(child);
    });
    expect(lines).toEqual(["outranks", "queued before", "spawner"]);
  });

  it("takes a generator, a function that makes one, or an effect", () => {
    const { value } = simulate(function* () {
      const generator = yield* spawn(now());
      const made = yield* spawn(function* () {
        return yield* now();
      });
      return yield* gather(generator, made);
    });
    expect(value).toEqual([0, 0]);
  });

  it.each([
    ["a number", 5],
    ["a promise", Promise.resolve(1)],
    ["a function that returns no generator", () => 5],
    ["an async generator", (async function* () {})()],
  ])("refuses %s, at the yield", (_, program) => {
    const { value } = simulate(function* () {
      return yield* tryCatch(spawn(program as never));
    });
    expect(value).toMatchObject({ ok: false, error: expect.any(TypeError) });
  });

  it("refuses unknown and bad options, all at once", () => {
    const { value } = simulate(function* () {
      return yield* tryCatch(spawn(say("x"), { priority: 1.5, nmae: "x", daemon: 1 } as never));
    });
    const { error } = value as { error: Error };
    expect(error).toBeInstanceOf(TypeError);
    expect(error.message).toMatch(/priority.*an integer.*1\.5.*Unknown option `nmae`.*daemon/s);
  });

  it("names tasks, by default after their id", () => {
    const { value } = simulate(function* () {
      const named = yield* spawn(say(), { name: "fetcher" });
      const unnamed = yield* spawn(say());
      return [named.name, unnamed.name, unnamed.id];
    });
    expect(value).toEqual(["fetcher", "task-2", 2]);
  });
});

describe("delay", () => {
  it("of 0 yields to every other runnable task once", () => {
    const { log: lines, now: end } = simulate(function* () {
      function* loop(name: string): Program<void> {
        for (let i = 1; i <= 3; i++) {
          yield* log(`${name}${i}`);
          yield* delay(0);
        }
      }
      yield* gather(yield* spawn(loop("a")), yield* spawn(loop("b")), yield* spawn(loop("c")));
    });
    expect(lines).toEqual(["a1", "b1", "c1", "a2", "b2", "c2", "a3", "b3", "c3"]);
    expect(end).toBe(0);
  });

  it("of 0 yields to tasks of lower priority too", () => {
    let isDone = false;
    const { value } = simulate(function* () {
      yield* spawn(
        // oxlint-disable-next-line require-yield -- it only sets the flag
        function* (): Program<void> {
          isDone = true;
        },
        { priority: PRIORITY_IDLE },
      );
      let polls = 0;
      const poller = yield* spawn(
        function* () {
          while (!isDone) {
            polls++;
            yield* delay(0);
          }
          return polls;
        },
        { priority: PRIORITY_HIGH },
      );
      return yield* wait(poller);
    });
    expect(value).toBe(1);
  });

  it.each([-1, Number.NaN, Number.POSITIVE_INFINITY, "5", undefined])(
    "refuses %s with a RangeError at the yield",
    (ms) => {
      const { value } = simulate(function* () {
        return yield* tryCatch(delay(ms as number));
      });
      expect(value).toMatchObject({ ok: false, error: expect.any(RangeError) });
    },
  );
});

describe("effects", () => {
  it("work by yield without a star too", () => {
    const { value } = simulate(function* (): Program<unknown> {
      const semaphore = (yield createSemaphore(1)) as never;
      yield acquireSemaphore(semaphore);
      yield delay(5);
      yield releaseSemaphore(semaphore);
      const child = (yield spawn(now())) as never;
      const outcome = yield tryCatch(function* () {
        yield delay(5);
        throw new RangeError("inside");
      });
      return [yield wait(child), outcome, yield now()];
    });
    expect(value).toEqual([5, { ok: false, error: new RangeError("inside") }, 10]);
  });

  it("may be yielded many times, by several tasks at once", () => {
    const pause = delay(10);
    const { value, now: end } = simulate(function* () {
      function* twice() {
        yield* pause;
        yield pause;
        yield* pause;
        return yield* now();
      }
      return yield* gather(yield* spawn(twice()), yield* spawn(twice()), yield* spawn(twice()));
    });
    expect(value).toEqual([30, 30, 30]);
    expect(end).toBe(30);
  });

  it("shared between tasks still decide for each task at its own moment", () => {
    const { log: lines } = simulate(function* () {
      const semaphore = yield* createSemaphore(1);
      const acquire = acquireSemaphore(semaphore);
      function* user(name: string): Program<void> {
        yield* acquire;
        yield* log(name);
        yield* delay(1);
        yield* releaseSemaphore(semaphore);
        yield acquire;
        yield* log(`${name} again`);
        yield* releaseSemaphore(semaphore);
      }
      yield* gather(yield* spawn(user("a")), yield* spawn(user("b")));
    });
    expect(lines).toEqual(["a", "b", "a again", "b again"]);
  });

  it.each([
    ["a number", 42, "42"],
    ["undefined", undefined, "undefined"],
    ["a promise", Promise.resolve(), "fromPromise"],
    ["a generator", (function* () {})(), "yield*"],
    ["a look-alike", { op: 0, subject: 1, detail: 2 }, "an object of class Object"],
  ])("are distinguished from %s, which is refused at that yield", (_, thing, hint) => {
    const { value } = simulate(function* (): Program<unknown> {
      try {
        yield thing as never;
      } catch (error) {
        yield* log("caught at the yield");
        return error;
      }
      return undefined;
    });
    expect(value).toBeInstanceOf(TypeError);
    expect((value as TypeError).message).toContain('Expected task "root" to yield an effect, got');
    expect((value as TypeError).message).toContain(hint);
  });

  it("cost the same step at any depth of nested programs", () => {
    function* deep(depth: number): Program<number> {
      return depth === 0 ? yield* now() : yield* deep(depth - 1);
    }
    expect(simulate(deep(200))).toMatchObject({ value: 0, steps: 1 });
  });

  it("refuse log messages that are not strings", () => {
    const { value } = simulate(function* () {
      return yield* tryCatch(log(5 as never));
    });
    expect(value).toMatchObject({ ok: false, error: { message: "Expected `message` to be a string, got 5" } });
  });
});

describe("tryCatch", () => {
  it("gives the value of a program, or what it threw", () => {
    const { value } = simulate(function* () {
      const good = yield* tryCatch(now());
      const bad = yield* tryCatch(function* (): Program<number> {
        yield* delay(1);
        throw new Error("no");
      });
      return [good, bad];
    });
    expect(value).toEqual([
      { ok: true, value: 0 },
      { ok: false, error: new Error("no") },
    ]);
  });
});
