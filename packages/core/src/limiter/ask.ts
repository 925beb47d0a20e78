/** The options of one request to a limiter, and their rules. */
import { abortSignal, anyObject, callback, integerFrom, kind, numberFrom, type Rules } from "../options.ts";

/** `LimiterAcquireOptions` with budgets of any name. */
export interface Ask {
  key?: unknown;
  cost?: { readonly [name: string]: number | undefined } | undefined;
  level?: number | undefined;
  signal?: AbortSignal | undefined;
  timeoutMs?: number | undefined;
}

type TryRules = Rules<Pick<Ask, "key" | "cost" | "level">>;

/** The rules of `tryAcquire`, for a limiter with this number of levels. */
export function tryRules(levels: number): TryRules {
  return { key: kind("anything", () => true), cost: anyObject, level: integerFrom(0, levels - 1) };
}

/** The rules of `acquire` and `run`. */
export function askRules(rules: TryRules): Rules<Ask> {
  const ofRun = { isOverload: callback };
  return { ...rules, ...ofRun, signal: abortSignal, timeoutMs: numberFrom(0) };
}
