import type { BudgetView, HostQuotas } from "@slotkeeper/queue";
import type { Exchange, Headers } from "./exchange.ts";

/** The largest integer of a structured field (RFC 9651). */
const MOST = 999_999_999_999_999;

/**
 * What is left of the limits of a host, as `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-11).
 * A budget in shadow mode is no limit. Both take whole numbers, so that quotas are rounded down and times up. `t` is the time until a budget is full again.
 */
export function rateLimitHeaders({ slots, free, budgets }: HostQuotas): Headers {
  let policy = `"slots";q=${slots};qu="concurrent-requests"`;
  let left = `"slots";r=${free}`;
  for (const budget of budgets) {
    if (budget.isShadow) continue;
    policy += `, "${budget.name}";${quotaOf(budget)}`;
    left += `, "${budget.name}";r=${whole(budget.available)};t=${whole(Math.ceil(budget.fullInMs / 1000))}`;
  }
  return { "RateLimit-Policy": policy, RateLimit: left };
}

/** A window is a whole number of seconds: 5 units per half a second are 10 per second. */
function quotaOf({ limit, perMs }: BudgetView): string {
  const seconds = Math.ceil(perMs / 1000);
  return `q=${whole((limit * seconds * 1000) / perMs)};w=${whole(seconds)}`;
}

function whole(value: number): number {
  return Math.min(MOST, Math.max(0, Math.floor(value)));
}

const WAIT = /(?:^|,)\s*wait\s*=\s*"?(\d{1,9})"?\s*(?=[,;]|$)/i;

/** `Prefer: wait=N` of a first call (RFC 7240), in milliseconds. A preference that is not understood is ignored. */
export function preferredWaitMs(exchange: Exchange): number | undefined {
  const [, seconds] = WAIT.exec(exchange.header("prefer") ?? "") ?? [];
  if (seconds === undefined) return undefined;
  exchange.setHeader("Preference-Applied", `wait=${seconds}`);
  return Number(seconds) * 1000;
}
