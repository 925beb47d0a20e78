import {
  acquireSemaphore,
  createSemaphore,
  delay,
  fromPromise,
  type Program,
  releaseSemaphore,
  run,
  type SemaphoreHandle,
  spawn,
  wait,
} from "slotkeeper/effects";
import { describe, expect, it } from "vitest";

const collectGarbage = (globalThis as { gc?: () => void }).gc;

/** A promise reaction's worth of event loop, then a collection: what only weak references hold is gone after it. */
async function collected(ref: WeakRef<object>): Promise<boolean> {
  for (let attempt = 0; attempt < 10; attempt++) {
    await new Promise((resolve) => setImmediate(resolve));
    collectGarbage?.();
    if (ref.deref() === undefined) return true;
  }
  return false;
}

function* used(semaphore: SemaphoreHandle): Program<void> {
  yield* acquireSemaphore(semaphore);
  yield* delay(0);
  yield* releaseSemaphore(semaphore);
}

/** In a program of its own, so that no variable of the caller's refers to the semaphore. */
function* makeIdle(): Program<WeakRef<SemaphoreHandle>> {
  const semaphore = yield* createSemaphore(2);
  yield* wait(yield* spawn(used(semaphore)));
  yield* used(semaphore);
  return new WeakRef(semaphore);
}

function* makeLeaked(): Program<WeakRef<SemaphoreHandle>> {
  const semaphore = yield* createSemaphore(1);
  yield* wait(yield* spawn(acquireSemaphore(semaphore)));
  return new WeakRef(semaphore);
}

describe("a semaphore without references", () => {
  it("is collected while the run goes on, once it is idle", async () => {
    expect(collectGarbage).toBeTypeOf("function");
    const wasCollected = await run(function* () {
      const ref = yield* makeIdle();
      return yield* fromPromise(collected(ref));
    });
    expect(wasCollected).toBe(true);
  });

  it("is not forgotten while a permit of it is leaked: the report needs it", async () => {
    let leaks = 0;
    await run(
      function* () {
        const ref = yield* makeLeaked();
        yield* fromPromise(collected(ref));
      },
      {
        onEnd: ({ permitsLeaked }) => {
          leaks = permitsLeaked.length;
        },
      },
    );
    expect(leaks).toBe(1);
  });
});
