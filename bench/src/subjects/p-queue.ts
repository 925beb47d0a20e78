import PQueue from "p-queue";
import type { Subject } from "../subject.ts";
import { alreadyReleased, mapOf, nothing, scopesOnly } from "./map-of.ts";

export const subject: Subject = {
  id: "p-queue",
  safety: ["abort"],
  lacks: {
    acquire: scopesOnly,
    tryAcquire: scopesOnly,
    timeout: "its timeout starts when the work starts, not while it waits",
    renew: "no time to live for a held slot",
  },
  make: (slots) => {
    const queue = new PQueue({ concurrency: slots });
    return {
      run: (work) => queue.add(work),
      runUnlessAborted: (signal, work) => queue.add(work, { signal }),
    };
  },
  makeRated: ({ slots, limit, perMs }) => {
    const queue = new PQueue({ concurrency: slots, intervalCap: limit, interval: perMs });
    return { run: (work) => queue.add(work) };
  },
  makeKeyed: () =>
    mapOf(
      () => new PQueue({ concurrency: 1 }),
      (queue) => queue.add(nothing),
      alreadyReleased,
    ),
};
