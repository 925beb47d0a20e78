import { newQueue } from "@henrygd/queue";
import type { Subject } from "../subject.ts";
import { alreadyReleased, mapOf, nothing, scopesOnly } from "./map-of.ts";

export const subject: Subject = {
  id: "@henrygd/queue",
  safety: [],
  lacks: {
    acquire: scopesOnly,
    tryAcquire: scopesOnly,
    signal: "takes no AbortSignal (clear() rejects every waiter)",
    timeout: "no timeout",
    renew: "no time to live for a held slot",
  },
  make: (slots) => {
    const queue = newQueue(slots);
    return { run: (work) => queue.add(work) };
  },
  makeKeyed: () =>
    mapOf(
      () => newQueue(1),
      (queue) => queue.add(nothing),
      alreadyReleased,
    ),
};
