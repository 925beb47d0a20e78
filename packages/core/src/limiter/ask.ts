/** What is asked of a limiter, and what it is checked for. */
import { check, expected, refuseUnknown } from "./options.ts";

/** `LimiterAcquireOptions` with any budgets. */
export interface Ask {
  key?: unknown;
  cost?: { readonly [name: string]: number | undefined } | undefined;
  level?: number | undefined;
  signal?: AbortSignal | undefined;
  timeoutMs?: number | undefined;
}

const KNOWN = ["key", "cost", "level", "signal", "timeoutMs", "isOverload"];

export function checkAsk(ask: Ask, timeoutMs: number, levels: number): void {
  refuseUnknown("options", ask, KNOWN);
  check("timeoutMs", timeoutMs);
  if (ask.level !== undefined) check("level", ask.level, 0, levels - 1);
  if (ask.signal !== undefined && !ask.signal?.addEventListener) {
    throw new TypeError(expected("signal", "an AbortSignal", ask.signal));
  }
}
