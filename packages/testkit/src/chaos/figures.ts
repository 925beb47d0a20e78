import { HOT_HOST } from "./chaos-load.ts";
import type { History, SessionRecord } from "./history.ts";

const WINDOW_MS = 1_000;
const STEP_MS = 100;
/** The part of the slot time that must be used. */
const UTILISED = 0.9;

/** The part of the hot host's slot time that was used in the window. */
export function utilisation(sessions: readonly SessionRecord[], slots: number, from: number, to: number): number {
  let used = 0;
  for (const { host, use } of sessions) {
    if (host !== HOT_HOST || use === undefined) continue;
    used += Math.max(0, Math.min(use.until, to) - Math.max(use.from, from));
  }
  return used / (slots * (to - from));
}

/**
 * The longest time in [from, to] for which the hot host was used too little: the cost of a fault, at its start or
 * later. It compares windows of one second, a tenth of a second apart.
 */
export function longestIdle(sessions: readonly SessionRecord[], slots: number, from: number, to: number): number {
  const near = sessions.filter(({ use }) => use !== undefined && use.until > from && use.from < to);
  let longest = 0;
  let since: number | undefined;
  for (let at = from; at + WINDOW_MS <= to; at += STEP_MS) {
    if (utilisation(near, slots, at, at + WINDOW_MS) >= UTILISED) since = undefined;
    else {
      since ??= at;
      longest = Math.max(longest, at + STEP_MS - since);
    }
  }
  return longest;
}

/** Whether the hot host was used enough in the last second. */
export function isUtilised(sessions: readonly SessionRecord[], slots: number, now: number): boolean {
  return utilisation(sessions, slots, now - WINDOW_MS, now) >= UTILISED;
}

/**
 * The longest wait in [from, to] at hosts that always have a free slot, without calls that were lost with an instance.
 */
export function longestStall(
  { sessions }: History,
  hosts: readonly string[],
  except: string | undefined,
  from: number,
  to: number,
): number {
  let longest = 0;
  for (const { host, askedAt, failedCalls, deliveries } of sessions) {
    if (!hosts.includes(host) || host === except || failedCalls > 0 || askedAt < from || askedAt > to) continue;
    longest = Math.max(longest, (deliveries[0]?.at ?? to) - askedAt);
  }
  return longest;
}
