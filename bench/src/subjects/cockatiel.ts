import { bulkhead, type IPolicy, TimeoutStrategy, timeout, wrap } from "cockatiel";
import type { Subject } from "../subject.ts";
import { alreadyReleased, mapOf, nothing, scopesOnly } from "./map-of.ts";

export const subject: Subject = {
  id: "cockatiel",
  safety: ["timeout", "abort"],
  lacks: { acquire: scopesOnly, tryAcquire: scopesOnly, renew: "no time to live for a held slot" },
  notes: {
    "W4 aborts": "an aborted waiter stays queued and is rejected when its turn comes: the figure includes that drain",
    "W4s aborted": "an aborted waiter stays queued and is rejected when its turn comes: the figure includes that drain",
    "W4 timeouts": "wrap(timeout, bulkhead): the caller is rejected, the waiter stays queued",
  },
  make: (slots) => {
    const policy = bulkhead(slots, Number.POSITIVE_INFINITY);
    const byTimeout = new Map<number, IPolicy>();
    return {
      run: (work) => policy.execute(work),
      runUnlessAborted: (signal, work) => policy.execute(work, signal),
      runWithin: (timeoutMs, work) => {
        let timed = byTimeout.get(timeoutMs);
        if (timed === undefined) {
          timed = wrap(timeout(timeoutMs, TimeoutStrategy.Aggressive), policy);
          byTimeout.set(timeoutMs, timed);
        }
        return timed.execute(work);
      },
    };
  },
  makeKeyed: () =>
    mapOf(
      () => bulkhead(1, Number.POSITIVE_INFINITY),
      (policy) => policy.execute(nothing),
      alreadyReleased,
    ),
};
