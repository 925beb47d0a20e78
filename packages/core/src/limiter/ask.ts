/** The options of one request to a limiter, and their rules. */
import { abortSignal, anyObject, callback, kind, numberFrom, type Rules } from "../options.ts";
import { leftOut, levelRule } from "./options.ts";
import type { IsOverload } from "./overload.ts";

/** Options of `Limiter.tryAcquire`. */
export interface LimiterTryOptions<B extends string = string> {
  /**
   * Selects the limits of `perKey` that apply in addition to the common ones. Only for a limiter with `perKey`.
   * @defaultValue no key: common limits only
   */
  key?: unknown;
  /** The cost of the request in units, by the name of the budget. A budget that is left out costs its `default`. */
  cost?: { readonly [Name in B]?: number | undefined } | undefined;
  /** The priority of the request; level 0 goes first. @defaultValue `defaultLevel` of the limiter */
  level?: number | undefined;
}

/** Options of `Limiter.acquire`. */
export interface LimiterAcquireOptions<B extends string = string> extends LimiterTryOptions<B> {
  /** Ends the wait: the promise rejects with the signal's own reason. */
  signal?: AbortSignal | undefined;
  /**
   * Longest wait, in milliseconds. 0 does not wait, `Infinity` waits without a limit.
   * @defaultValue `acquireTimeoutMs`
   */
  timeoutMs?: number | undefined;
}

/** Options of `Limiter.run` and `Limiter.wrap`. */
export interface LimiterRunOptions<T = unknown, B extends string = string> extends LimiterAcquireOptions<B> {
  /**
   * Decides whether the result of the work, or its error, means that the upstream is overloaded.
   * @defaultValue no result does
   */
  isOverload?: IsOverload<T> | undefined;
}

/** The options of any request, with budgets of any name. */
export type Ask = LimiterRunOptions<never>;

type TryRules = Rules<LimiterTryOptions>;

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
