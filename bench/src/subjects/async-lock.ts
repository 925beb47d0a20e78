import { createRequire } from "node:module";
import type { Subject, Work } from "../subject.ts";
import { alreadyReleased, nothing, scopesOnly } from "./map-of.ts";

interface AsyncLock {
  acquire(key: string, work: Work, options?: { timeout?: number }): Promise<unknown>;
}

const require = createRequire(import.meta.url);
// The package has no types.
const AsyncLock = require("async-lock") as new (options: { maxPending: number }) => AsyncLock;

// Its default refuses the 1,001st waiter.
const unbounded = { maxPending: Number.POSITIVE_INFINITY };

export const subject: Subject = {
  id: "async-lock",
  safety: ["timeout"],
  lacks: {
    acquire: scopesOnly,
    tryAcquire: scopesOnly,
    slots: "one slot per key, never more",
    signal: "takes no AbortSignal",
    renew: "its maximum execution time cannot be renewed",
  },
  notes: { "W4 timeouts": "the caller is rejected, the waiter stays queued" },
  make: () => {
    const lock = new AsyncLock(unbounded);
    return {
      run: (work) => lock.acquire("key", work),
      runWithin: (timeoutMs, work) => lock.acquire("key", work, { timeout: timeoutMs }),
    };
  },
  makeKeyed: () => {
    const lock = new AsyncLock(unbounded);
    // Keyed by itself, and it forgets a free key at once.
    return {
      lookup: (key) => key,
      acquire: (key: string) => lock.acquire(key, nothing),
      release: alreadyReleased,
      sweep: () => undefined,
    };
  },
};
