import {
  AcquireTimeoutError,
  acquireSemaphore,
  cancel,
  createSemaphore,
  delay,
  gather,
  log,
  now,
  OverReleaseError,
  PRIORITY_HIGH,
  PRIORITY_IDLE,
  type Program,
  releaseSemaphore,
  type SemaphoreHandle,
  simulate,
  spawn,
  type Task,
  TaskCancelledError,
  tryAcquireSemaphore,
  tryCatch,
  wait,
  withSemaphore,
} from "slotkeeper/effects";
import { describe, expect, it } from "vitest";

/** Takes a permit, says so, keeps it for a while. */
function* user(semaphore: SemaphoreHandle, name: string, holdMs = 10): Program<void> {
  yield* acquireSemaphore(semaphore);
  yield* log(`${name} in`);
  yield* delay(holdMs);
  yield* releaseSemaphore(semaphore);
}

/** How many permits are free: takes them all and gives them back. */
function* countFree(semaphore: SemaphoreHandle): Program<number> {
  let free = 0;
  while (yield* tryAcquireSemaphore(semaphore)) free++;
  for (let i = 0; i < free; i++) yield* releaseSemaphore(semaphore);
  return free;
}

describe("createSemaphore", () => {
  it.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, "3", undefined])(
    "refuses %s, catchable at the yield",
    (permits) => {
      const { value } = simulate(function* () {
        try {
          yield* createSemaphore(permits as number);
          return "made";
        } catch (error) {
          return error;
        }
      });
      expect(value).toEqual(new RangeError("permits must be >= 1"));
      expect(value).toBeInstanceOf(RangeError);
    },
  );

  it("gives an opaque handle with a read-only id", () => {
    const { value } = simulate(function* () {
      return [yield* createSemaphore(1), yield* createSemaphore(2)] as const;
    });
    const [first, second] = value;
    expect([first.id, second.id]).toEqual([1, 2]);
    expect(() => {
      (first as { id: number }).id = 7;
    }).toThrow(TypeError);
    expect(first.id).toBe(1);
    expect(Object.keys(first)).toEqual([]);
  });

  it("makes the only handles there are: one made by hand is a TypeError", () => {
    const { value } = simulate(function* () {
      const real = yield* createSemaphore(1);
      const byHand = Object.create(Object.getPrototypeOf(real)) as SemaphoreHandle;
      const outcomes = [];
      for (const handle of [byHand, { id: 1 }, undefined, 1]) {
        outcomes.push(yield* tryCatch(acquireSemaphore(handle as SemaphoreHandle)));
        outcomes.push(yield* tryCatch(tryAcquireSemaphore(handle as SemaphoreHandle)));
        outcomes.push(yield* tryCatch(releaseSemaphore(handle as SemaphoreHandle)));
      }
      return { real, outcomes };
    });
    for (const outcome of value.outcomes) expect(outcome).toMatchObject({ ok: false, error: expect.any(TypeError) });
    const HandleClass = value.real.constructor as new (...args: unknown[]) => SemaphoreHandle;
    expect(() => new HandleClass()).toThrow(TypeError);
    expect(() => new HandleClass(Symbol("made by createSemaphore"), {})).toThrow(TypeError);
  });

  it("makes handles for its own run only", () => {
    const stranger = simulate(createSemaphore(1)).value;
    const { value } = simulate(function* () {
      return yield* tryCatch(acquireSemaphore(stranger));
    });
    expect(value).toMatchObject({ ok: false, error: { message: "Semaphore 1 belongs to another run" } });
  });
});

describe("acquireSemaphore", () => {
  it("goes on without a switch while a permit is free", () => {
    const { log: lines } = simulate(function* () {
      const semaphore = yield* createSemaphore(2);
      yield* spawn(log("other"));
      yield* acquireSemaphore(semaphore);
      yield* acquireSemaphore(semaphore);
      yield* log("both taken");
      yield* delay(1);
    });
    expect(lines).toEqual(["both taken", "other"]);
  });

  it("parks at the tail, and waiters are granted in the order of arrival", () => {
    const { log: lines } = simulate(function* () {
      const semaphore = yield* createSemaphore(1);
      yield* gather(...["a", "b", "c", "d"].map((name) => user(semaphore, name)).map((program) => spawn(program)));
      yield* delay(100);
    });
    expect(lines).toEqual(["a in", "b in", "c in", "d in"]);
  });

  it("is fair whatever the priority of the waiter", () => {
    const { log: lines } = simulate(function* () {
      const semaphore = yield* createSemaphore(1);
      yield* acquireSemaphore(semaphore);
      const idle = yield* spawn(user(semaphore, "idle"), { priority: PRIORITY_IDLE });
      yield* delay(1);
      const high = yield* spawn(user(semaphore, "high"), { priority: PRIORITY_HIGH });
      yield* releaseSemaphore(semaphore);
      yield* gather(idle, high);
    });
    expect(lines).toEqual(["idle in", "high in"]);
  });

  it("throws AcquireTimeoutError when no task released in time, and consumes nothing", () => {
    const { value } = simulate(function* () {
      const semaphore = yield* createSemaphore(1, { name: "db" });
      yield* acquireSemaphore(semaphore);
      const outcome = yield* tryCatch(acquireSemaphore(semaphore, { timeoutMs: 50 }));
      const at = yield* now();
      yield* releaseSemaphore(semaphore);
      return { outcome, at, free: yield* countFree(semaphore) };
    });
    const { error } = value.outcome as { error: AcquireTimeoutError };
    expect(error).toBeInstanceOf(AcquireTimeoutError);
    expect(error).toMatchObject({ code: "ACQUIRE_TIMEOUT", semaphore: "db", waitedMs: 50, waiting: 0 });
    expect(value).toMatchObject({ at: 50, free: 1 });
  });

  it("that was granted in time is not disturbed by its timeout", () => {
    const { value, now: end } = simulate(function* () {
      const semaphore = yield* createSemaphore(1);
      const holder = yield* spawn(user(semaphore, "holder", 10));
      yield* delay(1);
      yield* acquireSemaphore(semaphore, { timeoutMs: 50 });
      const at = yield* now();
      yield* wait(holder);
      return at;
    });
    expect(value).toBe(10);
    // A timer left behind would have kept virtual time going to 51.
    expect(end).toBe(10);
  });

  it("with a timeout of 0 does not wait", () => {
    const { value, now: end } = simulate(function* () {
      const semaphore = yield* createSemaphore(1);
      yield* acquireSemaphore(semaphore, { timeoutMs: 0 });
      return yield* tryCatch(acquireSemaphore(semaphore, { timeoutMs: 0 }));
    });
    expect(value).toMatchObject({ ok: false, error: expect.any(AcquireTimeoutError) });
    expect(end).toBe(0);
  });

  it.each([{ timeoutMs: -1 }, { timeoutMs: "5" }, { timeout: 5 }, 5])(
    "refuses the options %j and takes no permit",
    (options) => {
      const { value } = simulate(function* () {
        const semaphore = yield* createSemaphore(1);
        const outcome = yield* tryCatch(acquireSemaphore(semaphore, options as never));
        return { outcome, free: yield* countFree(semaphore) };
      });
      expect(value).toMatchObject({ outcome: { ok: false, error: expect.any(Error) }, free: 1 });
    },
  );
});

describe("tryAcquireSemaphore", () => {
  it("says whether it took a permit, and never parks", () => {
    const { value } = simulate(function* () {
      const semaphore = yield* createSemaphore(1);
      yield* spawn(log("other"));
      return [yield* tryAcquireSemaphore(semaphore), yield* tryAcquireSemaphore(semaphore)];
    });
    expect(value).toEqual([true, false]);
  });

  it("never barges past a waiter: a permit in flight is not free", () => {
    const { value, log: lines } = simulate(function* () {
      const semaphore = yield* createSemaphore(1);
      yield* acquireSemaphore(semaphore);
      const waiter = yield* spawn(user(semaphore, "waiter"));
      yield* delay(1);
      yield* releaseSemaphore(semaphore);
      const stolen = yield* tryAcquireSemaphore(semaphore);
      yield* log("released");
      yield* wait(waiter);
      return stolen;
    });
    expect(value).toBe(false);
    expect(lines).toEqual(["released", "waiter in"]);
  });
});

describe("releaseSemaphore", () => {
  it("beyond the maximum is an OverReleaseError at the yield", () => {
    const { value } = simulate(function* () {
      const semaphore = yield* createSemaphore(2);
      const outcome = yield* tryCatch(releaseSemaphore(semaphore));
      return { outcome, free: yield* countFree(semaphore) };
    });
    const { error } = value.outcome as { error: OverReleaseError };
    expect(error).toBeInstanceOf(OverReleaseError);
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({ message: "semaphore released too many times", code: "OVER_RELEASE", permits: 2 });
    expect(value.free).toBe(2);
  });

  it("lets the releaser go on: it does not switch", () => {
    const { log: lines } = simulate(function* () {
      const semaphore = yield* createSemaphore(1);
      yield* acquireSemaphore(semaphore);
      const waiter = yield* spawn(user(semaphore, "waiter"), { priority: PRIORITY_HIGH });
      yield* releaseSemaphore(semaphore);
      yield* log("releaser");
      yield* wait(waiter);
    });
    expect(lines).toEqual(["releaser", "waiter in"]);
  });

  it("by a task that holds nothing gives back another's permit: there is no ownership", () => {
    const { value } = simulate(function* () {
      const semaphore = yield* createSemaphore(1);
      const taker = yield* spawn(acquireSemaphore(semaphore));
      yield* wait(taker);
      const before = yield* tryAcquireSemaphore(semaphore);
      yield* releaseSemaphore(semaphore);
      return [before, yield* tryAcquireSemaphore(semaphore)];
    });
    expect(value).toEqual([false, true]);
  });
});

describe("withSemaphore", () => {
  it("returns the program's value and gives the permit back", () => {
    const { value } = simulate(function* () {
      const semaphore = yield* createSemaphore(1);
      const inside = yield* withSemaphore(semaphore, function* () {
        return yield* tryAcquireSemaphore(semaphore);
      });
      return { inside, free: yield* countFree(semaphore) };
    });
    expect(value).toEqual({ inside: false, free: 1 });
  });

  it("gives the permit back when the program throws, and when it is no program at all", () => {
    const { value } = simulate(function* () {
      const semaphore = yield* createSemaphore(1);
      const thrown = yield* tryCatch(
        withSemaphore(semaphore, function* () {
          yield* delay(1);
          throw new Error("inside");
        }),
      );
      const misused = yield* tryCatch(withSemaphore(semaphore, 5 as never));
      return { thrown, misused, free: yield* countFree(semaphore) };
    });
    expect(value.thrown).toEqual({ ok: false, error: new Error("inside") });
    expect(value.misused).toMatchObject({ ok: false, error: expect.any(TypeError) });
    expect(value.free).toBe(1);
  });

  it("gives the permit back when the task is cancelled inside, or while it waits", () => {
    const { value } = simulate(function* () {
      const semaphore = yield* createSemaphore(1);
      const inside = yield* spawn(withSemaphore(semaphore, delay(1_000)));
      const waiting = yield* spawn(withSemaphore(semaphore, delay(1_000)));
      yield* delay(1);
      yield* cancel(waiting);
      yield* cancel(inside);
      yield* delay(0);
      return yield* countFree(semaphore);
    });
    expect(value).toBe(1);
  });

  it("gives the permit back when the program cancels its own task with its last step", () => {
    const { value } = simulate(function* () {
      const semaphore = yield* createSemaphore(1);
      const own: Task<void> = yield* spawn(function* () {
        yield* withSemaphore(semaphore, function* () {
          yield* cancel(own);
        });
        yield* log("never");
      });
      const outcome = yield* tryCatch(wait(own));
      return { outcome, free: yield* countFree(semaphore) };
    });
    expect(value).toMatchObject({ outcome: { ok: false, error: expect.any(TaskCancelledError) }, free: 1 });
  });

  it("takes a timeout for the permit", () => {
    const { value } = simulate(function* () {
      const semaphore = yield* createSemaphore(1);
      yield* acquireSemaphore(semaphore);
      return yield* tryCatch(withSemaphore(semaphore, log("never"), { timeoutMs: 5 }));
    });
    expect(value).toMatchObject({ ok: false, error: expect.any(AcquireTimeoutError) });
  });
});
