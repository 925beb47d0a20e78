import Bottleneck from "bottleneck";
import type { Subject } from "../subject.ts";
import { alreadyReleased, mapOf, nothing, scopesOnly } from "./map-of.ts";

export const subject: Subject = {
  id: "bottleneck",
  safety: ["timeout"],
  lacks: {
    acquire: scopesOnly,
    tryAcquire: scopesOnly,
    signal: "takes no AbortSignal (stop() drops every waiter)",
    timeout: "its expiration starts when the work starts, not while it waits",
    renew: "its expiration cannot be renewed",
  },
  make: (slots) => {
    const limiter = new Bottleneck({ maxConcurrent: slots });
    return { run: (work) => limiter.schedule(work) };
  },
  makeRated: ({ slots, limit, perMs }) => {
    const limiter = new Bottleneck({
      maxConcurrent: slots,
      reservoir: limit,
      reservoirRefreshAmount: limit,
      reservoirRefreshInterval: perMs,
    });
    return { run: (work) => limiter.schedule(work) };
  },
  makeKeyed: () =>
    mapOf(
      () => new Bottleneck({ maxConcurrent: 1 }),
      (limiter) => limiter.schedule(nothing),
      alreadyReleased,
    ),
};
