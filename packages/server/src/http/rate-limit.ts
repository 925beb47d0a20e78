import { SLOTS_QUOTA } from "@slotkeeper/protocol";
import type { BudgetView, HostQuotas } from "@slotkeeper/queue";
import type { Headers } from "./exchange.ts";

/** The largest integer of a structured field (RFC 9651). */
const MOST = 999_999_999_999_999;

/**
 * What is left of the limits of a host, as `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-11).
 * A budget in shadow mode is no limit. Both take whole numbers, so that quotas are rounded down and times up. `t` is the time until a budget is full again.
 */
export function rateLimitHeaders({ slots, free, budgets }: HostQuotas): Headers {
  let policy = `"${SLOTS_QUOTA}";q=${slots};qu="concurrent-requests"`;
  let left = `"${SLOTS_QUOTA}";r=${free}`;
  for (const budget of budgets) {
    if (budget.isShadow) continue;
    policy += `, "${budget.name}";${quotaOf(budget)}`;
    left += `, "${budget.name}";r=${whole(budget.available)};t=${whole(Math.ceil(budget.fullInMs / 1000))}`;
  }
  return { "RateLimit-Policy": policy, RateLimit: left };
}

/** Rounding down a quota of this many units changes the rate by at most 1 %. So does a window longer by as many seconds. */
const FINE = 100;

/**
 * Both are whole numbers: 5 units per half a second are 10 per second, and 1.5 per second are 3 per 2 seconds. The window
 * is the budget's own if its units are whole, else the next one whose units are; if none is near, the rate is at most 1 %
 * too low. Takes at most `FINE` steps.
 */
function quotaOf({ limit, perMs }: BudgetView): string {
  const unitsIn = (seconds: number) => (limit * seconds * 1000) / perMs;
  const first = Math.ceil(perMs / 1000);
  let seconds = first;
  while (!isWhole(unitsIn(seconds)) && unitsIn(seconds) < FINE && seconds < first + FINE) {
    const next = Math.floor(unitsIn(seconds)) + 1;
    seconds = Math.max(seconds + 1, Math.ceil((next * perMs) / (limit * 1000) - EXACT));
  }
  const units = unitsIn(seconds);
  return `q=${whole(isWhole(units) ? Math.round(units) : units)};w=${whole(seconds)}`;
}

/** The part of a number that rounding may have changed. */
const EXACT = 1e-9;

function isWhole(units: number): boolean {
  return Math.abs(units - Math.round(units)) <= EXACT * units;
}

function whole(value: number): number {
  return Math.min(MOST, Math.max(0, Math.floor(value)));
}
