import { Semaphore } from "es-toolkit/promise";
import type { Subject } from "../subject.ts";
import { mapOf } from "./map-of.ts";

export const subject: Subject = {
  id: "es-toolkit",
  safety: [],
  lacks: {
    tryAcquire: "no try, only acquire",
    run: "no scoped run",
    signal: "takes no AbortSignal",
    timeout: "no timeout (withTimeout() leaves the waiter queued and loses its slot)",
    renew: "no time to live for a held slot",
  },
  make: (slots) => {
    const semaphore = new Semaphore(slots);
    return { acquire: () => semaphore.acquire(), release: () => semaphore.release() };
  },
  makeKeyed: () =>
    mapOf(
      () => new Semaphore(1),
      (semaphore) => semaphore.acquire(),
      (_, semaphore) => semaphore.release(),
    ),
};
