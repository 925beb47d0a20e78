/** What is missing in libraries that limit a rate, but not the number at a time. */
import type { Subject } from "../subject.ts";

const reason = "limits a rate, not how many at a time";

export const ratesOnly: Subject["lacks"] = {
  acquire: reason,
  tryAcquire: reason,
  run: reason,
  slots: reason,
  signal: reason,
  timeout: reason,
  renew: reason,
};
