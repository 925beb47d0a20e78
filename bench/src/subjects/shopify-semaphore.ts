import { type Permit, Semaphore } from "@shopify/semaphore";
import type { Subject } from "../subject.ts";
import { mapOf } from "./map-of.ts";

// `release` is async; nothing needs its promise, so it is not awaited.
const release = (permit: Permit): void => void permit.release();

export const subject: Subject = {
  id: "@shopify/semaphore",
  safety: ["owner-safe release"],
  lacks: {
    tryAcquire: "no try, only acquire",
    run: "no scoped run",
    signal: "takes no AbortSignal",
    timeout: "no timeout",
    renew: "no time to live for a held slot",
  },
  make: (slots) => {
    const semaphore = new Semaphore(slots);
    return { acquire: () => semaphore.acquire(), release };
  },
  makeKeyed: () =>
    mapOf(
      () => new Semaphore(1),
      (semaphore) => semaphore.acquire(),
      release,
    ),
};
