import { levelOf } from "./order.ts";
import { type Account, isActive, type Ledger } from "./state.ts";

/**
 * Everything that can happen to a ledger. Each runs in O(log idle accounts), and each leaves the sums equal to what
 * they sum:
 *   T1 inFlight, waiting, demand = the sums over accounts; activeWeight = over active ones
 *   T2 contendingWeight, contendingHeld = over accounts that wait and are below their limit
 *   T3 an account that is idle and not ahead of the meter does not exist
 * `advance` comes first: the meter must have run on the old sums before they change.
 */

/** Lets the meter run to `now`, and forgets idle accounts it has passed. */
export function advance(ledger: Ledger, now: number): void {
  const elapsed = now - ledger.asOf;
  if (elapsed <= 0) return;
  if (ledger.activeWeight > 0) {
    ledger.progress += (Math.min(ledger.slots, ledger.demand) / ledger.activeWeight) * elapsed;
  }
  ledger.asOf = now;
  for (let first = ledger.idle.peek(); first !== undefined && isPassed(ledger, first); first = ledger.idle.peek()) {
    ledger.idle.remove(first);
    ledger.accounts.delete(first.bucket);
  }
}

/** A waiter more. A bucket that was idle joins at the meter, never below what it had. */
export function addWaiter(ledger: Ledger, bucket: string, weight: number, limit: number): Account {
  const account = activate(ledger, bucket, weight);
  account.waiting++;
  ledger.waiting++;
  recount(ledger, account, limit);
  return account;
}

export function removeWaiter(ledger: Ledger, account: Account, limit: number): void {
  account.waiting--;
  ledger.waiting--;
  recount(ledger, account, limit);
  retire(ledger, account);
}

export function addHold(ledger: Ledger, bucket: string, weight: number, limit: number): Account {
  const account = activate(ledger, bucket, weight);
  changeHeld(ledger, account, 1, limit);
  return account;
}

/** The ledger must stand at the moment the hold ended: use accrues exactly to its end. */
export function endHold(ledger: Ledger, account: Account, limit: number): void {
  changeHeld(ledger, account, -1, limit);
  retire(ledger, account);
}

export function levelIn(ledger: Ledger): number {
  return levelOf(ledger.slots, ledger.inFlight - ledger.contendingHeld, ledger.contendingWeight);
}

function changeHeld(ledger: Ledger, account: Account, by: 1 | -1, limit: number): void {
  account.usedMs += account.inFlight * (ledger.asOf - account.asOf);
  account.asOf = ledger.asOf;
  if (account.contends) ledger.contendingHeld += by;
  account.inFlight += by;
  ledger.inFlight += by;
  recount(ledger, account, limit);
}

function activate(ledger: Ledger, bucket: string, weight: number): Account {
  let account = ledger.accounts.get(bucket);
  if (account === undefined) {
    account = newAccount(bucket, weight, ledger.asOf);
    ledger.accounts.set(bucket, account);
  }
  if (!isActive(account)) {
    ledger.idle.remove(account);
    account.weight = weight;
    account.usedMs = Math.max(account.usedMs, ledger.progress * weight);
    account.asOf = ledger.asOf;
    ledger.activeWeight += weight;
  } else if (account.weight !== weight) reweigh(ledger, account, weight);
  return account;
}

/** A changed weight keeps the place per weight: neither a windfall nor a debt. */
function reweigh(ledger: Ledger, account: Account, weight: number): void {
  account.usedMs = (account.usedMs + account.inFlight * (ledger.asOf - account.asOf)) * (weight / account.weight);
  account.asOf = ledger.asOf;
  ledger.activeWeight += weight - account.weight;
  if (account.contends) ledger.contendingWeight += weight - account.weight;
  account.weight = weight;
}

function recount(ledger: Ledger, account: Account, limit: number): void {
  const demand = Math.min(limit, account.waiting + account.inFlight);
  ledger.demand += demand - account.demand;
  account.demand = demand;
  const contends = account.waiting > 0 && account.inFlight < limit;
  if (contends === account.contends) return;
  account.contends = contends;
  ledger.contendingWeight += contends ? account.weight : -account.weight;
  ledger.contendingHeld += contends ? account.inFlight : -account.inFlight;
  // Sums of fractions drift; with nobody waiting they are known exactly.
  if (ledger.waiting === 0) ledger.contendingWeight = 0;
}

function retire(ledger: Ledger, account: Account): void {
  if (isActive(account)) return;
  ledger.activeWeight = ledger.inFlight + ledger.waiting === 0 ? 0 : ledger.activeWeight - account.weight;
  if (isPassed(ledger, account)) ledger.accounts.delete(account.bucket);
  else ledger.idle.push(account);
}

function isPassed(ledger: Ledger, account: Account): boolean {
  return account.usedMs <= ledger.progress * account.weight + ROUNDING_MS;
}

/** A bucket alone uses exactly what the meter shows, but for the rounding of sums. */
const ROUNDING_MS = 1e-3;

function newAccount(bucket: string, weight: number, now: number): Account {
  return {
    bucket,
    weight,
    inFlight: 0,
    waiting: 0,
    usedMs: 0,
    asOf: now,
    demand: 0,
    contends: false,
    idleIndex: -1,
  };
}
