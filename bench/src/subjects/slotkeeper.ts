import { KeyedSemaphore, realClock, Semaphore, type Slot } from "slotkeeper";
import { Limiter } from "slotkeeper/limiter";
import type { Subject } from "../subject.ts";

const release = (slot: Slot): boolean => slot.release();

export const subject: Subject = {
  id: "slotkeeper",
  safety: ["owner-safe release", "timeout", "abort"],
  lacks: {},
  make: (slots) => {
    const semaphore = new Semaphore(slots);
    return {
      acquire: () => semaphore.acquire(),
      release,
      tryAcquire: () => semaphore.tryAcquire(),
      run: (work) => semaphore.run(work),
      acquireUnlessAborted: (signal) => semaphore.acquire({ signal }),
      acquireWithin: (timeoutMs) => semaphore.acquire({ timeoutMs }),
    };
  },
  makeKeyed: () => {
    const keyed = new KeyedSemaphore(1);
    return {
      lookup: (key) => key,
      acquire: (key: string) => keyed.acquire(key),
      release,
      sweep: () => keyed.sweep(0),
    };
  },
  makeRated: ({ slots, limit, perMs }) => {
    const limiter = new Limiter({ slots, budgets: { requests: { limit, perMs } } });
    return { run: (work) => limiter.run(work) };
  },
  makeLeased: (slots, ttlMs) => {
    let timers = 0;
    const clock = {
      now: () => realClock.now(),
      setTimer(callback: () => void, delayMs: number) {
        timers += 1;
        return realClock.setTimer(() => {
          timers -= 1;
          callback();
        }, delayMs);
      },
      clearTimer(timer: unknown) {
        timers -= 1;
        realClock.clearTimer(timer);
      },
    };
    const semaphore = new Semaphore(slots, { ttlMs, clock });
    return {
      acquire: () => semaphore.acquire(),
      renew: (slot: Slot) => slot.renew(),
      release,
      timers: () => timers,
    };
  },
};
