/** An effect or a handle that is used where it does not belong is refused with a sentence. */
import {
  acquireSemaphore,
  createSemaphore,
  delay,
  log,
  type Program,
  releaseSemaphore,
  type SemaphoreHandle,
  simulate,
} from "slotkeeper/effects";
import { describe, expect, it } from "vitest";

describe("an effect outside of any run", () => {
  it.each([
    ["that need not park", log("x")],
    ["that parks", delay(1)],
  ])("is refused with a sentence, one %s", (_, effect) => {
    function* program(): Program<unknown> {
      return yield* effect;
    }
    expect(() => program().next()).toThrow(
      new TypeError(
        "Expected an effect to be yielded by a running task, got one outside of any: start its program by `run`, `simulate` or `spawn`",
      ),
    );
  });

  it("is so after a run, too", () => {
    simulate(log("x"));
    expect(() => log("y")[Symbol.iterator]().next()).toThrow(TypeError);
  });
});

describe("a semaphore effect", () => {
  it("refuses a semaphore of another run at the yield", () => {
    const stranger = simulate(createSemaphore(1)).value;
    for (const effect of [acquireSemaphore(stranger), releaseSemaphore(stranger)]) {
      expect(() => simulate(effect)).toThrow(new TypeError("Semaphore 1 belongs to another run"));
      expect(() => effect[Symbol.iterator]().next()).toThrow("outside of any");
    }
  });

  it("refuses what is no handle at the yield, not before", () => {
    for (const effect of [acquireSemaphore, releaseSemaphore].map((make) => make({} as SemaphoreHandle))) {
      expect(() => simulate(effect)).toThrow("Expected a semaphore handle of `createSemaphore`");
    }
  });
});
