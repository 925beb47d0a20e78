/**
 * HIST14  In any time T, no more than `burst + limit × T / perSeconds` of a budget, of the host or of one value of a key, is
 *     charged to grants, net of what is given back. After a release that used more than its estimate, nothing is granted before that debt is paid, down to what the
 *     budget holds. A grant is charged what it asked for, or the default.
 *
 * A grant was charged between its first call, or the last time at which it certainly waited, and the arrival of its answer. An
 * offer may have been charged up to `collectMs` before the session got it. Of a grant with a release that says `used`, only
 * that part counts, even if the release had no effect. A canceled one counts nothing. A debt counts if the release was answered
 * while the lease certainly ran, and so soon that it was committed before the answer. It counts for grants that were asked
 * for later: one at the same time may have come before it, as its own did. It counts at most `limit`: the rest of what is missing then may be given back later.
 *
 * An instance is behind the store's time by the time that an answer takes, so that much more may be granted.
 *
 * Not judged: hosts whose configuration changes, budgets in shadow mode, and times with lost commits, a jump of the
 * store's clock, or a wrong clock of an instance. Cost: O(n) for each of n grants, at most `MOST` of them.
 */

import { groupBy } from "../group-by.ts";
import {
  ACKNOWLEDGED_MS,
  certainEnd,
  type History,
  leaseEnd,
  type Session,
  type Slot,
  waitedUntil,
} from "../history.ts";
import type { BudgetFacts, KeyFacts } from "../line.ts";
import { Findings, type Rule } from "../rule.ts";
import { clockErrorMs } from "../succession.ts";

/** How many grants after a charge are added up. */
const MOST = 200;
/** Clocks are read in whole milliseconds. */
const ROUNDING_MS = 1;

/** An amount that was charged at some time of a span. */
interface Charged {
  readonly slot: Slot;
  readonly from: number;
  readonly until: number;
  readonly amount: number;
}

/** `of`: a budget of one value of a key. */
type Judged = BudgetFacts & { readonly of?: string };
/** From a time on, no more than the budget holds and gets is charged, less what is missing from it then. */
interface Start {
  readonly at: number;
  readonly missing: number;
  readonly slot: Slot;
  /** Whether a grant was certainly charged after the start. */
  readonly isBefore: (grant: Charged) => boolean;
}

export const budgets: Rule = {
  name: "HIST14",
  title: "charges of budgets",
  judge(history) {
    const found = new Findings("HIST14", history);
    for (const [host, sessions] of history.byHost()) {
      if (history.isSemaphore(host)) continue;
      const config = history.facts.of(host).unchanged;
      if (config === undefined) {
        found.unjudged.add("the configuration of a host changes, or is unknown");
        continue;
      }
      const slots = sessions.flatMap((session) => session.slots);
      for (const [name, budget] of Object.entries(config.budgets)) {
        if (budget.shadow !== true) judgeBudget(history, host, slots, name, budget, found);
      }
      for (const [key, facts] of Object.entries(config.keys)) judgeKey(history, host, slots, key, facts, found);
    }
    return found;
  },
};

/** Each value has its own budgets. */
function judgeKey(
  history: History,
  host: string,
  slots: readonly Slot[],
  key: string,
  { budgets: usual = {}, shadow: isTried = false, for: own = {} }: KeyFacts,
  found: Findings,
): void {
  const valueOf = ({ session }: Slot) => (key === "bucket" ? session.bucket : session.keys[key]) ?? "";
  for (const [value, ofValue] of groupBy(slots, valueOf)) {
    const all = Object.entries({ ...usual, ...own[value]?.budgets });
    for (const [name, budget] of value === "" ? [] : all) {
      if (budget.shadow ?? isTried) continue;
      const rest = { ...budget, of: `${key} = ${JSON.stringify(value)}` };
      judgeBudget(history, host, ofValue, name, rest, found);
    }
  }
}

function judgeBudget(
  history: History,
  host: string,
  slots: readonly Slot[],
  name: string,
  budget: Judged,
  found: Findings,
): void {
  const grants = slots.flatMap((slot) => chargeOf(history, slot, name, budget, found));
  found.judged += grants.length;
  grants.sort((a, b) => a.until - b.until);
  const starts: Start[] = [
    ...grants.map(({ from: at, slot }) => ({ at, missing: 0, slot, isBefore: ({ from }: Charged) => at <= from })),
    ...slots.flatMap((slot) => debtOf(history, slot, name, budget)),
  ];
  for (const start of starts) judgeFrom(history, host, start, grants, name, budget, found);
}

/** Adds up the grants that were certainly charged after the start. */
function judgeFrom(
  history: History,
  host: string,
  { at, missing, slot: first, isBefore }: Start,
  grants: readonly Charged[],
  name: string,
  { limit, perSeconds, burst = limit, of }: Judged,
  found: Findings,
): void {
  const doubtedFrom = history.faults.doubtedFrom(at);
  const errorMs = ROUNDING_MS + clockErrorMs(history, host);
  let sum = missing;
  let count = 0;
  for (const grant of grants) {
    if (!isBefore(grant) || grant.until < at) continue;
    if (grant.until >= doubtedFrom || count >= MOST || history.faults.hasClockJump(at, grant.until)) return;
    sum += grant.amount;
    count++;
    const most = burst + (limit * (grant.until - at + errorMs)) / (perSeconds * 1000);
    if (sum <= most * (1 + 1e-9)) continue;
    const named = of === undefined ? name : `${name} of ${of}`;
    const spent = `${round(sum)} of the budget ${named} in ${Math.round(grant.until - at)} ms, ${round(most)} allowed`;
    found.add(host, grant.until, spent, [first.grants[0], grant.slot.grants[0]]);
    return;
  }
}

function chargeOf(history: History, slot: Slot, name: string, budget: Judged, found: Findings): Charged[] {
  const { session, grants, arrivedAt, releases } = slot;
  const charged = chargedTo(slot, name, budget);
  if (charged === undefined) return [];
  const asked = askedOf(slot, name, budget);
  if (Math.abs(charged - asked) > 1e-9)
    found.add(session.host, arrivedAt, `${charged} of ${name} is charged to a request that costs ${asked}`, grants);
  const used = Math.min(charged, ...releases.flatMap((call) => usedOf(call.used, name)));
  const amount = session.cancels.length > 0 ? 0 : used;
  return [{ slot, from: chargedFrom(history, session, arrivedAt), until: arrivedAt, amount }];
}

/** The answer names the charge of the host's budget. That of a key differs from it if they have other defaults. */
function chargedTo(slot: Slot, name: string, budget: Judged): number | undefined {
  const stated = slot.grants[0]?.charged[name];
  return stated === undefined || budget.of === undefined ? stated : askedOf(slot, name, budget);
}

function askedOf({ session }: Slot, name: string, budget: Judged): number {
  return session.calls[0]?.cost[name] ?? budget.default ?? 1;
}

function chargedFrom(history: History, session: Session, arrivedAt: number): number {
  const collectMs = history.facts.of(session.host).unchanged?.collectMs ?? Number.POSITIVE_INFINITY;
  return Math.max(session.askedAt, waitedUntil(history, session, arrivedAt) - collectMs);
}

/** After a release that used more than was charged, at least this is missing from the budget. */
function debtOf(history: History, slot: Slot, name: string, budget: Judged): Start[] {
  const { session, releases, revocations } = slot;
  const [release] = releases;
  const charged = chargedTo(slot, name, budget);
  const used = release?.used[name];
  if (release === undefined || charged === undefined || used === undefined || !(used > charged)) return [];
  const isCertain =
    release.httpStatus === 200 &&
    release.answeredAt - release.sentAt < ACKNOWLEDGED_MS - 2 * ROUNDING_MS &&
    release.answeredAt <= leaseEnd(slot) &&
    session.cancels.length + revocations.length === 0 &&
    certainEnd(history, slot) >= release.sentAt;
  if (!isCertain) return [];
  const missing = Math.min(used - charged, budget.limit);
  return [{ at: release.sentAt, missing, slot, isBefore: ({ from }) => release.answeredAt < from }];
}

function usedOf(used: { readonly [name: string]: number }, name: string): number[] {
  const amount = used[name];
  return amount === undefined || !Number.isFinite(amount) || amount < 0 ? [] : [amount];
}

function round(amount: number): number {
  return Math.round(amount * 100) / 100;
}
