import type { KeyedGate } from "../subject.ts";

/** What people write around a semaphore without keys: a `Map` that is filled on demand and cleared by deletion. */
export function mapOf<Limiter, Handle>(
  make: () => Limiter,
  acquire: (limiter: Limiter) => PromiseLike<Handle>,
  release: (handle: Handle, limiter: Limiter) => unknown,
): KeyedGate {
  const limiters = new Map<string, Limiter>();
  return {
    lookup: (key) => {
      let limiter = limiters.get(key);
      if (limiter === undefined) {
        limiter = make();
        limiters.set(key, limiter);
      }
      return limiter;
    },
    acquire,
    release,
    sweep: () => {
      for (const key of limiters.keys()) limiters.delete(key);
    },
  };
}

/** The work of a cycle for libraries that only have `run`. */
export const nothing = async (): Promise<void> => {};

/** Their release: the scope has ended. */
export const alreadyReleased = (): void => {};

/** Their reason for having no `acquire` and no `tryAcquire`. */
export const scopesOnly = "only scopes work, see the row of run";
