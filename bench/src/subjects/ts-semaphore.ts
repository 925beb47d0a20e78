import Semaphore from "ts-semaphore";
import type { Subject } from "../subject.ts";
import { mapOf } from "./map-of.ts";

export const subject: Subject = {
  id: "ts-semaphore",
  safety: [],
  lacks: {
    tryAcquire: "no try, only acquire",
    signal: "takes no AbortSignal",
    timeout: "no timeout",
    renew: "no time to live for a held slot",
  },
  make: (slots) => {
    const semaphore = new Semaphore(slots);
    // The package spells it `aquire`.
    return {
      acquire: () => semaphore.aquire(),
      release: () => semaphore.release(),
      run: (work) => semaphore.use(work),
    };
  },
  makeKeyed: () =>
    mapOf(
      () => new Semaphore(1),
      (semaphore) => semaphore.aquire(),
      (_, semaphore) => semaphore.release(),
    ),
};
