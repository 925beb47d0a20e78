import { Sema } from "async-sema";
import type { Subject } from "../subject.ts";
import { mapOf } from "./map-of.ts";

export const subject: Subject = {
  id: "async-sema",
  safety: [],
  lacks: {
    run: "no scoped run",
    signal: "takes no AbortSignal",
    timeout: "no timeout",
    renew: "no time to live for a held slot",
  },
  make: (slots) => {
    const sema = new Sema(slots);
    return {
      acquire: () => sema.acquire(),
      release: () => sema.release(),
      tryAcquire: () => sema.tryAcquire() as unknown,
    };
  },
  makeKeyed: () =>
    mapOf(
      () => new Sema(1),
      (sema) => sema.acquire(),
      (_, sema) => sema.release(),
    ),
};
