/**
 * The cheapest JavaScript that does each job: no library can be faster. A limit omits everything that the job does not
 * strictly need (owners, cancellation, checks), so it is not a usable semaphore.
 */
import type { Gate, NativeLoop, Subject, Work } from "./subject.ts";

const limitSubject = (parts: Omit<Subject, "id" | "safety" | "lacks">): Subject => ({
  id: "limit",
  safety: [],
  lacks: {},
  ...parts,
});

/** Kept outside, so that the engine cannot prove that the awaited value is unused. */
export const sink: { value: unknown } = { value: undefined };

function awaitSettled(): NativeLoop {
  const object = { held: true };
  return async (count) => {
    for (let i = 0; i < count; i++) sink.value = await Promise.resolve(object);
  };
}

/** W1, W1s: only the promise that `acquire` has to return. */
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

/** First in, first out, in a ring that doubles: the cheapest queue. */
class Ring<T> {
  #items: (T | undefined)[] = Array.from({ length: 1024 });
  #head = 0;
  #size = 0;

  push(item: T): void {
    if (this.#size === this.#items.length) this.#grow();
    this.#items[(this.#head + this.#size) & (this.#items.length - 1)] = item;
    this.#size += 1;
  }

  shift(): T | undefined {
    if (this.#size === 0) return undefined;
    const item = this.#items[this.#head];
    this.#items[this.#head] = undefined;
    this.#head = (this.#head + 1) & (this.#items.length - 1);
    this.#size -= 1;
    return item;
  }

  #grow(): void {
    const items = this.#items;
    this.#items = Array.from({ length: items.length * 2 }, (_, i) => items[(this.#head + i) & (items.length - 1)]);
    this.#head = 0;
  }
}

interface ResolverQueue {
  push(resolve: Resolve): unknown;
  shift(): Resolve | undefined;
}

/** A semaphore of a counter and a queue, no owner. */
function bareSemaphore(slots: number, waiters: ResolverQueue): Gate {
  let free = slots;
  const enqueue = (resolve: Resolve): void => void waiters.push(resolve);
  return {
    acquire: () => {
      if (free === 0) return new Promise<undefined>(enqueue);
      free -= 1;
      return Promise.resolve(undefined);
    },
    release: () => {
      const resolve = waiters.shift();
      if (resolve === undefined) free += 1;
      else resolve(undefined);
    },
  };
}

/** W2: a counter and a ring of resolvers. */
export const counterAndRing = limitSubject({ make: (slots) => bareSemaphore(slots, new Ring<Resolve>()) });

/** W3, W6: a plain array of resolvers, read by an increasing index. */
export const arrayOfResolvers = limitSubject({
  make: (slots) => {
    const resolvers: Resolve[] = [];
    let next = 0;
    const shift = (): Resolve | undefined => (next < resolvers.length ? resolvers[next++] : undefined);
    return bareSemaphore(slots, { push: (resolve) => resolvers.push(resolve), shift });
  },
});

/** W2r: a counter and a ring of work, started when a slot is free. */
export const ringOfWork = limitSubject({
  make: (slots) => {
    let free = slots;
    const waiting = new Ring<() => void>();
    const finish = (): void => {
      const start = waiting.shift();
      if (start === undefined) free += 1;
      else start();
    };
    return {
      run: (work) => {
        if (free > 0) {
          free -= 1;
          const promise = work();
          void promise.then(finish);
          return promise;
        }
        return new Promise((resolve) => {
          waiting.push(() => {
            const promise = work();
            void promise.then((value) => {
              resolve(value);
              finish();
            });
          });
        });
      },
    };
  },
});

type Reject = (reason: unknown) => void;

/** W4, aborts, with one listener per waiter, without which an abort would have no effect. */
export const abortsWithListener: Subject = {
  ...limitSubject({
    make: () => ({
      acquire: () => Promise.resolve(undefined),
      release: () => undefined,
      acquireUnlessAborted: (signal) =>
        new Promise((_, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason), { once: true });
        }),
    }),
  }),
  id: "limit + listener",
};

/**
 * W4, aborts: the driver creates and aborts the controllers; the promises are rejected afterwards, without listeners.
 * No library can be this fast, because a library has to listen.
 */
export const bareAborts = limitSubject({
  make: () => {
    const rejects: Reject[] = [];
    const enqueue = (_: unknown, reject: Reject): void => void rejects.push(reject);
    return {
      acquire: () => Promise.resolve(undefined),
      release: () => {
        for (const reject of rejects) reject(undefined);
      },
      // Reads the signal, because a controller creates it only on demand.
      acquireUnlessAborted: (signal) => (signal.aborted ? Promise.reject(signal.reason) : new Promise(enqueue)),
    };
  },
});

/** W4, timeouts: one timer per duration, which rejects all waiters with that duration. */
export const bareTimeouts = limitSubject({
  make: () => {
    const error = new Error("timed out");
    const byDuration = new Map<number, Reject[]>();
    const startTimer = (timeoutMs: number): Reject[] => {
      const waiters: Reject[] = [];
      byDuration.set(timeoutMs, waiters);
      setTimeout(() => {
        byDuration.delete(timeoutMs);
        for (const reject of waiters) reject(error);
      }, timeoutMs);
      return waiters;
    };
    return {
      acquire: () => Promise.resolve(undefined),
      release: () => undefined,
      acquireWithin: (timeoutMs) =>
        new Promise((_, reject) => {
          (byDuration.get(timeoutMs) ?? startTimer(timeoutMs)).push(reject);
        }),
    };
  },
});

interface Settlers {
  readonly resolve: Resolve;
  readonly reject: Reject;
}

/** W4s: one listener that rejects all waiters; otherwise they are released one by one. */
export const bareSharedSignal = limitSubject({
  make: () => {
    let listenedTo: AbortSignal | undefined;
    const waiters: Settlers[] = [];
    let next = 0;
    const listen = (signal: AbortSignal): void => {
      listenedTo = signal;
      signal.addEventListener("abort", () => {
        for (; next < waiters.length; next++) waiters[next]?.reject(signal.reason);
      });
    };
    return {
      acquire: () => Promise.resolve(undefined),
      release: () => {
        if (next < waiters.length) waiters[next++]?.resolve(undefined);
      },
      acquireUnlessAborted: (signal) =>
        new Promise<undefined>((resolve, reject) => {
          if (listenedTo !== signal) listen(signal);
          waiters.push({ resolve, reject });
        }),
    };
  },
});
