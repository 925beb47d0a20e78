import type { KeyedGate } from "../subject.ts";

/** What people write around a semaphore without keys: a `Map`, filled on demand and cleared by deletion. */
export function mapOf<Limiter>(make: () => Limiter, cycle: (limiter: Limiter) => PromiseLike<unknown>): KeyedGate {
  const limiters = new Map<string, Limiter>();
  return {
    cycle: (key) => {
      let limiter = limiters.get(key);
      if (limiter === undefined) {
        limiter = make();
        limiters.set(key, limiter);
      }
      return cycle(limiter);
    },
    sweep: () => {
      for (const key of limiters.keys()) limiters.delete(key);
    },
  };
}

/** The work of a cycle for libraries that only scope. */
export const nothing = async (): Promise<void> => {};
