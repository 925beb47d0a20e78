import pLimit from "p-limit";
import type { Subject } from "../subject.ts";
import { alreadyReleased, mapOf, nothing, scopesOnly } from "./map-of.ts";

export const subject: Subject = {
  id: "p-limit",
  safety: [],
  lacks: {
    acquire: scopesOnly,
    tryAcquire: scopesOnly,
    signal: "takes no AbortSignal (clearQueue() drops every waiter)",
    timeout: "no timeout",
    renew: "no time to live for a held slot",
  },
  make: (slots) => {
    const limit = pLimit(slots);
    return { run: (work) => limit(work) };
  },
  makeKeyed: () =>
    mapOf(
      () => pLimit(1),
      (limit) => limit(nothing),
      alreadyReleased,
    ),
};
