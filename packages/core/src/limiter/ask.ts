/** The options of one request to a limiter, and their rules. */
import { abortSignal, anyObject, callback, kind, numberFrom, type Rules } from "../options.ts";
import { leftOut, levelRule } from "./options.ts";
import type { IsOverload } from "./overload.ts";

/** `LimiterAcquireOptions` with budgets of any name. */
export interface Ask {
  key?: unknown;
  cost?: { readonly [name: string]: number | undefined } | undefined;
  level?: number | undefined;
  signal?: AbortSignal | undefined;
  timeoutMs?: number | undefined;
  isOverload?: IsOverload<never> | undefined;
}

type TryRules = Rules<Pick<Ask, "key" | "cost" | "level">>;

const ANY_KEY = kind("anything", () => true);
const NO_KEY = leftOut("the limiter has no `perKey`");

/** The rules of `tryAcquire`, for a limiter with this number of levels. */
export function tryRules(levels: number, isKeyed: boolean): TryRules {
  return { key: isKeyed ? ANY_KEY : NO_KEY, cost: anyObject, level: levelRule(levels) };
}

/** The rules of `acquire` and `run`. */
export function askRules(rules: TryRules): Rules<Ask> {
  return { ...rules, signal: abortSignal, timeoutMs: numberFrom(0), isOverload: callback };
}
