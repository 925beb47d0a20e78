import type { HostPolicy } from "../host-policy.ts";
import type { Book } from "./book.ts";
import type { Head, LimitsRecord } from "./records.ts";

/** The head of a new host. Fences start at the time in microseconds, above the fences of an earlier host with the same key. */
export function newHead(now: number, fenceFloor: number): Head {
  return {
    slots: 1,
    fence: Math.max(Math.floor(now * 1000), fenceFloor),
    now,
    progress: 0,
    meterAt: now,
    breaker: { code: 0, errors: 0, successes: 0, consecutive: 0 },
    avgWaitMs: 0,
    // Written out, because a field that is added to an object later is stored apart from it.
    hostname: undefined,
    lastEndAt: undefined,
    capacity: undefined,
    idleSince: undefined,
    weighted: undefined,
    forgottenAt: undefined,
    first: undefined,
    fullAt: undefined,
    chargeLevel: undefined,
    classes: undefined,
  };
}

/**
 * The limits in force: what the users of a semaphore chose (`capacity`), otherwise what an operator set, otherwise the
 * configuration.
 */
export function policyInForce({ policy, live }: LimitsRecord, capacity: number | undefined): HostPolicy {
  if (live === undefined && capacity === undefined) return policy;
  const { isPaused: _, ...limits } = live ?? {};
  return { ...policy, ...limits, ...(capacity === undefined ? {} : { slots: capacity }) };
}

/** An operator has paused the host: holders go on, but nothing new is granted. */
export function isPausedBy(limits: LimitsRecord | undefined): boolean {
  return limits?.live?.isPaused === true;
}

/**
 * The average wait of a host: an EWMA of the waits of sessions that were granted or timed out. It decays while no session
 * waits: a crowd an hour ago says nothing about the next caller.
 */

const OLD_SHARE = 0.8;
/** Not `1 - OLD_SHARE`, which is a little less: a wait that meets a threshold exactly must reach it. */
const NEW_SHARE = 0.2;

export function addWait(book: Book, waitedMs: number): void {
  book.draft.avgWaitMs = OLD_SHARE * book.head.avgWaitMs + NEW_SHARE * Math.max(0, waitedMs);
}

/** A session waits again. The average decays once for each poll interval in which no session waited. */
export function becomeBusy(book: Book, pollIntervalMs: number): void {
  const { idleSince, avgWaitMs } = book.head;
  if (idleSince === undefined) return;
  book.draft.avgWaitMs = avgWaitMs * OLD_SHARE ** ((book.now - idleSince) / pollIntervalMs);
  book.draft.idleSince = undefined;
}

export function becomeIdle(book: Book): void {
  if (book.head.idleSince === undefined && book.head.avgWaitMs > 0) book.draft.idleSince = book.now;
}
