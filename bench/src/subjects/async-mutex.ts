import { Semaphore, type SemaphoreInterface, withTimeout } from "async-mutex";
import type { Subject } from "../subject.ts";
import { mapOf } from "./map-of.ts";

type Ticket = [number, SemaphoreInterface.Releaser];

const release = (ticket: Ticket): void => ticket[1]();

export const subject: Subject = {
  id: "async-mutex",
  safety: ["owner-safe release", "timeout"],
  lacks: {
    tryAcquire: "no synchronous try: tryAcquire() makes a promise and a timer",
    signal: "takes no AbortSignal (cancel() rejects every waiter)",
    renew: "no time to live for a held slot",
  },
  make: (slots) => {
    const semaphore = new Semaphore(slots);
    // The timeout belongs to a decorator, not to the call: one decorator per duration.
    const byTimeout = new Map<number, SemaphoreInterface>();
    return {
      acquire: () => semaphore.acquire(),
      release,
      run: (work) => semaphore.runExclusive(work),
      acquireWithin: (timeoutMs) => {
        let decorated = byTimeout.get(timeoutMs);
        if (decorated === undefined) {
          decorated = withTimeout(semaphore, timeoutMs);
          byTimeout.set(timeoutMs, decorated);
        }
        return decorated.acquire();
      },
    };
  },
  makeKeyed: () =>
    mapOf(
      () => new Semaphore(1),
      (semaphore) => semaphore.acquire(),
      release,
    ),
};
