/**
 * The arithmetic of a budget that refills continuously: how much is missing, when a cost can be paid, what a charge and a
 * refund change. The limiter and the service of `@slotkeeper/queue` both use it.
 *
 * LEVEL1  In any interval of length T, at most `burst + limit × T / perMs` units are charged, net of refunds, if each
 *     charge was payable. The budget holds at most `burst` units, and `limit` units flow in per `perMs`.
 * LEVEL2  A refund leaves the level as if the smaller amount had been charged in the first place (`lowest-levels.ts`). It
 *     never gives back more than what is still missing.
 * LEVEL3  "Payable now" and "payable at" use one formula: at the time that `payableAt` returned, and not before, the cost
 *     is payable, unless something was charged or given back meanwhile. The time has fractions of a millisecond.
 * LEVEL4  A time before the last charge gives no units.
 *
 * All comparisons tolerate an error of two billionths of `perMs`, and of the resolution of the clock, so that rounding
 * never delays a request by a millisecond. A level is plain data. The functions change it in place.
 */
import { type LowestLevels, lower, note } from "./lowest-levels.ts";

/** How a budget refills. */
export interface Refill {
  readonly limit: number;
  readonly perMs: number;
  /** The most units that the budget holds, and so the largest cost of one grant. */
  readonly burst: number;
}

/** The state of a budget. */
export interface Level {
  /** The units missing from `burst` at the time `at`. Only charges and refunds update it, so that rounding errors do not add up. */
  spent: number;
  at: number;
  /** When the budget was last full. */
  fullAt: number;
  /** How much was missing before each charge since then. */
  lowest?: LowestLevels | undefined;
}

const SLACK = 2e-9;

/** A full budget. */
export function newLevel(): Level {
  return { spent: 0, at: 0, fullAt: 0, lowest: undefined };
}

/** How many units are missing from `burst`. */
export function missingAt({ spent, at }: Level, { limit, perMs }: Refill, now: number): number {
  const missing = spent - ((now - at) * limit) / perMs;
  return missing > 0 ? missing : 0;
}

/** Returns 0 if the cost can be paid now, otherwise the time at which it can be paid. Infinity: it exceeds `burst`. */
export function payableAt(level: Level, refill: Refill, cost: number, now: number): number {
  const at = dueAt(level, refill, cost);
  return at <= now ? 0 : at;
}

/** LEVEL3: depends on the level alone, so the answer is the same at any time before it. */
function dueAt({ spent, at }: Level, { limit, perMs, burst }: Refill, cost: number): number {
  const slackMs = SLACK * perMs;
  if (((cost - burst) * perMs) / limit > slackMs) return Number.POSITIVE_INFINITY;
  return at + (((spent + cost - burst) * perMs) / limit - slackMs);
}

/** Takes units out. The caller has checked that they are payable, or makes a debt. */
export function charge(level: Level, refill: Refill, amount: number, now: number): void {
  const missing = missingAt(level, refill, now);
  if (missing > 0) note((level.lowest ??= { times: [], levels: [] }), missing, now);
  else {
    level.fullAt = now;
    level.lowest = undefined;
  }
  level.spent = missing + amount;
  level.at = now;
}

/** Gives back a part of what was charged at `chargedAt`. */
export function refund(level: Level, refill: Refill, amount: number, chargedAt: number, now: number): void {
  if (level.fullAt > chargedAt) return;
  const missing = missingAt(level, refill, now);
  const refunded = Math.min(amount, missing);
  level.spent = missing - (level.lowest === undefined ? refunded : lower(level.lowest, refunded, chargedAt));
  level.at = now;
}

/** Call before the limits change: keeps what is missing, in units. */
export function freeze(level: Level, refill: Refill, now: number): void {
  level.spent = missingAt(level, refill, now);
  level.at = now;
}
