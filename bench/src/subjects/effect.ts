import { Effect, Semaphore } from "effect";
import type { NativeLoop, Subject } from "../subject.ts";
import { alreadyReleased, mapOf, nothing } from "./map-of.ts";

/** One fiber that runs `body` `count` times: how an Effect program loops, with no promise in between. */
const repeat =
  (body: Effect.Effect<unknown>): NativeLoop =>
  (count) => {
    let left = count;
    return Effect.runPromise(
      Effect.whileLoop({
        while: () => left > 0,
        body: () => body,
        step: () => {
          left -= 1;
        },
      }),
    );
  };

const inFiber = "inside one fiber, the way its programs are written: nothing waits for a microtask there";

export const subject: Subject = {
  id: "effect",
  safety: ["timeout", "abort"],
  lacks: { renew: "no time to live for a held slot" },
  notes: {
    W1: inFiber,
    W1s: inFiber,
    W5: inFiber,
    W1r: "inside one fiber; the work is Effect.promise(work)",
    W2: "one fiber per task, forEach with unbounded concurrency; the work is Effect.promise(work)",
  },
  make: (slots) => {
    const semaphore = Semaphore.makeUnsafe(slots);
    const take = semaphore.take(1);
    const release = semaphore.release(1);
    return {
      acquire: () => Effect.runPromise(take),
      release: () => Effect.runSync(release),
      run: (work) => Effect.runPromise(semaphore.withPermit(Effect.promise(work))),
      acquireUnlessAborted: (signal) => Effect.runPromise(take, { signal }),
      acquireWithin: (timeoutMs) => Effect.runPromise(Effect.timeout(take, timeoutMs)),
    };
  },
  makeKeyed: () =>
    mapOf(
      () => Semaphore.makeUnsafe(1),
      (semaphore) => Effect.runPromise(semaphore.withPermit(Effect.promise(nothing))),
      alreadyReleased,
    ),
  native: {
    W1: (slots) => {
      const semaphore = Semaphore.makeUnsafe(slots);
      const release = semaphore.release(1);
      return repeat(Effect.flatMap(semaphore.take(1), () => release));
    },
    W1s: (slots) => {
      const semaphore = Semaphore.makeUnsafe(slots);
      const release = semaphore.release(1);
      const take = Effect.andThen(semaphore.take(1), release);
      return repeat(Effect.flatMap(semaphore.takeIfAvailable(1), (taken) => (taken ? release : take)));
    },
    W1r: (slots) => {
      const semaphore = Semaphore.makeUnsafe(slots);
      return (count, work) => repeat(semaphore.withPermit(Effect.promise(work)))(count, work);
    },
    W2: (slots) => {
      const semaphore = Semaphore.makeUnsafe(slots);
      return (count, work) => {
        const task = semaphore.withPermit(Effect.promise(work));
        const tasks = Array.from({ length: count }, () => task);
        return Effect.runPromise(Effect.all(tasks, { concurrency: "unbounded", discard: true }));
      };
    },
    W5: (slots) => {
      const semaphore = Semaphore.makeUnsafe(slots);
      const release = semaphore.release(1);
      return repeat(Effect.flatMap(semaphore.takeIfAvailable(1), () => release));
    },
  },
};
