/**
 * The cheapest JavaScript that does each job: what no library can go below. A limit drops whatever the job does not
 * strictly need (owners, cancellation, checks), so it is no semaphore to use.
 */
import type { NativeLoop, Subject, Work } from "./subject.ts";

const limitSubject = (parts: Omit<Subject, "id" | "safety" | "lacks">): Subject => ({
  id: "limit",
  safety: [],
  lacks: {},
  ...parts,
});

/** Kept outside so that the engine cannot prove the awaited value unused. */
export const sink: { value: unknown } = { value: undefined };

function awaitSettled(): NativeLoop {
  const object = { held: true };
  return async (count) => {
    for (let i = 0; i < count; i++) sink.value = await Promise.resolve(object);
  };
}

/** W1, W1s: the promise that `acquire` has to return, and nothing else. */
export const settledPromise = limitSubject({ native: { W1: awaitSettled, W1s: awaitSettled } });

/** W1r: the work, without a limiter. */
export const bareWork = limitSubject({
  make: () => ({ run: (work: Work) => work() }),
});

/** W5: a counter and one small object. */
export const counterAndObject = limitSubject({
  make: (slots) => {
    let free = slots;
    return {
      tryAcquire: () => {
        if (free === 0) return undefined;
        free -= 1;
        return { held: true };
      },
      release: (slot: { held: boolean }) => {
        slot.held = false;
        free += 1;
      },
    };
  },
});

type Resolve = (value: undefined) => void;

/** W2: the barest semaphore, a counter and a ring of resolvers, no owner. */
export const counterAndRing = limitSubject({
  make: (slots) => {
    let free = slots;
    let ring: (Resolve | undefined)[] = Array.from({ length: 1024 });
    let head = 0;
    let waiting = 0;
    const grow = (): void => {
      const larger: (Resolve | undefined)[] = Array.from({ length: ring.length * 2 });
      for (let i = 0; i < waiting; i++) larger[i] = ring[(head + i) & (ring.length - 1)];
      ring = larger;
      head = 0;
    };
    const enqueue = (resolve: Resolve): void => {
      if (waiting === ring.length) grow();
      ring[(head + waiting) & (ring.length - 1)] = resolve;
      waiting += 1;
    };
    return {
      acquire: () => {
        if (free > 0) {
          free -= 1;
          return Promise.resolve(undefined);
        }
        return new Promise<undefined>(enqueue);
      },
      release: () => {
        if (waiting === 0) {
          free += 1;
          return;
        }
        const resolve = ring[head] as Resolve;
        ring[head] = undefined;
        head = (head + 1) & (ring.length - 1);
        waiting -= 1;
        resolve(undefined);
      },
    };
  },
});

/** W3, W6: a plain array of resolvers, read by an index that moves on. */
export const arrayOfResolvers = limitSubject({
  make: (slots) => {
    let free = slots;
    const resolvers: Resolve[] = [];
    let next = 0;
    const enqueue = (resolve: Resolve): void => void resolvers.push(resolve);
    return {
      acquire: () => {
        if (free > 0) {
          free -= 1;
          return Promise.resolve(undefined);
        }
        return new Promise<undefined>(enqueue);
      },
      release: () => {
        const resolve = resolvers[next];
        if (resolve === undefined) {
          free += 1;
          return;
        }
        next += 1;
        resolve(undefined);
      },
    };
  },
});
