import { blockedByWords, refillWords, unitsOf } from "@slotkeeper/server/words";
import type { HostState } from "../operate/call-operator.ts";
import { breakerOf } from "./draw-hosts.ts";
import { countOf, harmless, spanOf } from "./terminal-text.ts";
import { waitingAt } from "./top-model.ts";

/** What people read about one host, its slots and its sessions, in `top` and `who`. */

type Slot = HostState["slots"][number];
type Session = HostState["sessions"][number];
type Budget = NonNullable<HostState["budgets"]>[number];
type Class = NonNullable<HostState["classes"]>[number];
type Key = HostState["keys"][number];

export function hostSummary(host: HostState): string {
  const { limits, inFlight, limit = 0 } = host;
  const perBucket = limits.maxSlotPerIp.value === 0 ? "no limit" : countOf(limits.maxSlotPerIp.value);
  return `${countOf(inFlight)} of ${limit === 0 ? "?" : countOf(limit)} slots in use (${limits.maxSlotPerHost.origin}), ${perBucket} per bucket, ${countOf(waitingAt(host))} waiting, breaker ${breakerOf(host)}${host.isPaused ? ", paused: nothing new is granted" : ""}`;
}

/** The tables of the host's budgets, classes and keys: rows of cells, below their headings. Empty ones are left out. */
export function tablesOf({ budgets = [], classes = [], keys, limit }: HostState): string[][][] {
  const tables = [
    [BUDGET_HEADINGS, ...budgets.map(budgetCells)],
    [CLASS_HEADINGS, ...classes.map((one) => classCells(one, limit))],
    [KEY_HEADINGS, ...keys.slice(0, KEYS_SHOWN).map(keyCells)],
  ];
  return tables.filter(({ length }) => length > 1);
}

/** The name, what is left as a bar and as numbers, how it refills, and when it is full again or out of debt. */
function budgetCells(budget: Budget): string[] {
  const { name, available, burst, fullInMs, isShadow } = budget;
  return [
    isShadow ? `${name} (shadow)` : name,
    barOf(available / burst, BAR_COLUMNS),
    leftOf(budget),
    refillWords(budget),
    fullInMs === 0 ? "full" : spanOf(fullInMs),
  ];
}

/** The value, its slots as a bar and as numbers, its waiters, and what is left of its budgets. */
function keyCells(one: Key): string[] {
  const { key, value, inFlight, slots, waiting, budgets, isShadow } = one;
  const name = `${key} ${harmless(value)}`;
  return [
    isShadow ? `${name} (shadow)` : name,
    slots === undefined ? "" : barOf(inFlight / slots, KEY_COLUMNS),
    slots === undefined ? countOf(inFlight) : `${countOf(inFlight)} of ${countOf(slots)}`,
    countOf(waiting),
    budgets.map((budget) => `${budget.name} ${leftOf(budget)}`).join(", "),
  ];
}

const KEY_HEADINGS = ["KEY", "", "SLOTS", "WAITING", "LEFT"];
/** How many values are shown. `GET …/state` has more. */
const KEYS_SHOWN = 5;
const KEY_COLUMNS = 10;

function barOf(share: number, columns: number): string {
  const filled = Math.round(columns * Math.min(1, Math.max(0, share)));
  return `${"█".repeat(filled)}${"░".repeat(columns - filled)}`;
}

function leftOf({ available, burst }: Pick<Budget, "available" | "burst">): string {
  return available < 0 ? `${unitsOf(-available)} in debt` : `${unitsOf(available)} of ${unitsOf(burst)}`;
}

const BUDGET_HEADINGS = ["BUDGET", "", "LEFT", "REFILL", "FULL IN"];
const BAR_COLUMNS = 20;

/** The name, the slots in use as a bar and as a number, the limits of the class, its share, and its waiting sessions. */
function classCells({ name, weight, floor, ceiling, inFlight, waiting, share }: Class, slots = 0): string[] {
  return [
    name,
    barOf(inFlight / Math.max(1, ceiling ?? slots), BAR_COLUMNS),
    countOf(inFlight),
    unitsOf(weight),
    floor === 0 ? "-" : countOf(floor),
    ceiling === undefined ? "-" : countOf(ceiling),
    share === undefined ? "-" : unitsOf(share),
    countOf(waiting),
  ];
}

const CLASS_HEADINGS = ["CLASS", "", "IN USE", "WEIGHT", "FLOOR", "CEILING", "SHARE", "WAITING"];

/** The bucket, how long it has held the slot, and what is left of the lease. */
export function slotCells(slot: Slot): [bucket: string, held: string, lease: string] {
  const lease = slot.isReleased ? "released" : spanOf(Math.max(0, slot.endsInMs));
  return [bucketWithDemand(slot), heldText(slot), lease];
}

export function heldText({ heldMs }: Slot): string {
  return heldMs === undefined ? "-" : spanOf(heldMs);
}

/** The position, the bucket, how long it has waited at this time, how long it will wait, and why. */
export function sessionCells(
  session: Session,
  at: number,
): [position: string, bucket: string, waited: string, forecast: string, why: string] {
  const { position, arrivedAt, estimatedWaitMs, blockedBy, isAwake } = session;
  return [
    countOf(position),
    bucketWithDemand(session),
    spanOf(Math.max(0, at - arrivedAt)),
    estimatedWaitMs === undefined || !isAwake ? "-" : spanOf(estimatedWaitMs),
    isAwake ? (blockedByWords(blockedBy) ?? "next") : "client is away",
  ];
}

/** `ann`, `ann (3 slots)` or `ann (chat, 3 slots)`. */
function bucketWithDemand({ bucket, width, class: ofClass }: Slot | Session): string {
  const special = [...(ofClass === undefined ? [] : [ofClass]), ...(width > 1 ? [`${countOf(width)} slots`] : [])];
  return special.length === 0 ? bucketName(bucket) : `${bucketName(bucket)} (${harmless(special.join(", "))})`;
}

export function bucketName(bucket: string): string {
  return bucket === "" ? "(no bucket)" : harmless(bucket);
}

/** The last part of the slot's name: a key of a host may contain dots, a fence does not. */
export function fenceOf({ slot }: Slot): string {
  return slot.slice(slot.lastIndexOf(".") + 1);
}
