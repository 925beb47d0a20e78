import { classOf } from "@slotkeeper/protocol";
import { Book } from "../book/book.ts";
import { type BreakerView, viewBreaker } from "../book/breaker.ts";
import { type BudgetView, viewBudgets } from "../book/budget-view.ts";
import { type ClassView, shownClass, viewClasses } from "../book/class-view.ts";
import { isPausedBy } from "../book/head.ts";
import { lineOfSlot, lineOfWaiter, partsOfLine } from "../book/line.ts";
import type {
  AccountRecord,
  BookImage,
  BookRecord,
  BudgetRecord,
  Head,
  LeaseRecord,
  LimitsRecord,
  LiveLimits,
  OfferRecord,
  WaiterRecord,
} from "../book/records.ts";
import { busiestKeys, type KeySnapshot } from "./key-snapshot.ts";

/** A host for operators, as the store has it. It contains no tokens. */
export interface HostSnapshot {
  readonly host: string;
  readonly hostname: string | undefined;
  readonly slots: number;
  /** The slots of leases and offers. */
  readonly inFlight: number;
  /** Waiters of the whole fleet. */
  readonly waiting: number;
  /** How long the oldest of them has waited; 0 if there is none. */
  readonly oldestWaitMs: number;
  readonly progress: number;
  readonly breaker: BreakerView;
  readonly live: LiveLimits | undefined;
  readonly isPaused: boolean;
  readonly avgWaitMs: number;
  readonly isHot: boolean;
  readonly buckets: readonly BucketSnapshot[];
  readonly leases: readonly LeaseSnapshot[];
  readonly budgets: readonly BudgetView[];
  readonly classes: readonly ClassView[];
  /** The busiest values of its keys. */
  readonly keys: readonly KeySnapshot[];
}

/** A bucket of a host with its share of use. */
export interface BucketSnapshot {
  readonly bucket: string;
  /** Absent: the default. */
  readonly class?: string;
  readonly weight: number;
  readonly inFlight: number;
  readonly waiting: number;
  readonly usedMs: number;
}

/** A slot that is held. */
export interface LeaseSnapshot {
  /** `<host>.<fence>`. */
  readonly slot: string;
  readonly session: string;
  readonly bucket: string;
  readonly endsInMs: number;
  readonly heldMs: number;
  /** The slot was released, and its minimum hold or spacing is not over yet. */
  readonly isReleased: boolean;
  readonly isProbe: boolean;
  readonly width: number;
  /** Absent: the class of requests that name none. */
  readonly class?: string;
}

/** Only reads. Leaves out everything that has ended by time. */
export function snapshotOf(host: string, { head, records }: BookImage, now: number): HostSnapshot {
  const leases = records.filter((record): record is LeaseRecord => record.kind === "lease" && record.endsAt > now);
  const offers = records.filter((record): record is OfferRecord => record.kind === "offer" && record.lapsesAt > now);
  const limits = records.find((record): record is LimitsRecord => record.kind === "limits");
  const accounts = new Map<string, AccountRecord>();
  const budgets = new Map<string, BudgetRecord>();
  for (const record of records) {
    if (record.kind === "account") accounts.set(record.key, record);
    else if (record.kind === "budget") budgets.set(record.key, record);
  }
  const held = countBy([...leases, ...offers].map((slot) => [lineOfSlot(slot), slot.width]));
  const waiters = records.filter(
    (record): record is WaiterRecord => record.kind === "waiter" && record.deadlineAt > now,
  );
  const waiting = countBy(waiters.map((waiter) => [lineOfWaiter(waiter), 1]));
  const names = new Set([...accounts.keys(), ...held.keys(), ...waiting.keys()]);
  return {
    host,
    hostname: head.hostname,
    slots: head.slots,
    inFlight: [...held.values()].reduce((sum, one) => sum + one, 0),
    waiting: waiters.length,
    oldestWaitMs: waiters.reduce((oldest, { arrivedAt }) => Math.max(oldest, now - arrivedAt), 0),
    progress: head.progress,
    breaker: viewBreaker(head.breaker, now),
    live: limits?.live,
    isPaused: isPausedBy(limits),
    avgWaitMs: head.avgWaitMs,
    isHot: head.weighted?.isHot ?? false,
    buckets: [...names].map((line) => {
      const { weight = 1, usedMs = 0, asOf = now } = accounts.get(line) ?? {};
      const inFlight = held.get(line) ?? 0;
      const used = usedMs + inFlight * Math.max(0, now - asOf);
      const [name, bucket] = partsOfLine(line);
      return { bucket, ...shownClass(name), weight, inFlight, waiting: waiting.get(line) ?? 0, usedMs: used };
    }),
    leases: leases.map((lease) => leaseSnapshot(host, lease, now)),
    budgets: viewBudgets(limits?.policy.budgets, (name) => budgets.get(name)?.level, now),
    classes: classesOf(host, head, [...records.filter(isKept), ...leases, ...offers, ...waiters]),
    keys: busiestKeys(limits?.policy.keys, [...leases, ...offers, ...waiters], [...budgets.values()], now),
  };
}

/** Limits and accounts. */
function isKept({ kind }: BookRecord): boolean {
  return kind === "limits" || kind === "account";
}

/** Only hosts with classes need a book for it. */
function classesOf(host: string, head: Head, records: readonly BookRecord[]): readonly ClassView[] {
  return head.classes === undefined ? [] : viewClasses(Book.of(host, undefined, { head, records }));
}

function leaseSnapshot(host: string, lease: LeaseRecord, now: number): LeaseSnapshot {
  const { fence, session, bucket, endsAt, grantedAt, isReleased, isProbe, width } = lease;
  const slot = `${host}.${fence}`;
  return {
    slot,
    session,
    bucket,
    endsInMs: endsAt - now,
    heldMs: now - grantedAt,
    isReleased,
    isProbe,
    width,
    ...shownClass(classOf(lease.charge?.asked)),
  };
}

function countBy(lines: readonly (readonly [line: string, count: number])[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const [line, count] of lines) counts.set(line, (counts.get(line) ?? 0) + count);
  return counts;
}
