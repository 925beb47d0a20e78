import type { Waiter, WaiterBatch } from "../store/slot-store.ts";
import type { EngineContext } from "./context.ts";
import type { HostQueue } from "./host-queue.ts";
import type { Session } from "./session.ts";

/** Whom one call to the store is about. */
export interface Selection {
  /** To be admitted and tried. */
  readonly tries: Session[];
  /** To be admitted only: the client is away, the bucket is denied, or the host is hot and others are first. */
  readonly registers: Session[];
  readonly isWeighted: boolean;
}

/** A batch is bounded, so that a call costs the same however many wait. */
const MAX_BATCH = 64;

/**
 * Layers 2 to 6 of the funnel: picks the sessions of the next batch, in O(batch · log n). Newcomers and those of a lost
 * answer go always; of those in the pool the best-ranked go, at a cold host as many as may find a slot, at a hot one as
 * many as the quota leaves.
 */
export function select(host: HostQueue, engine: EngineContext, now: number): Selection {
  const { scheduler, pollIntervalMs } = engine.options();
  const settings = { scheduler, pollIntervalMs, minHoldMs: host.policy.minHoldMs };
  const isWeighted = scheduler.isEnabled && host.heat.isHot(host.pending, host.policy.slots, settings);
  const selection: Selection = { tries: [], registers: [], isWeighted };
  takeUnsure(host, selection);
  takeFresh(host, selection);
  if (selection.registers.length > 0) return selection;
  if (isWeighted) takeTurns(host, engine, selection, now);
  else takeBest(host, selection, now);
  return selection;
}

/** Puts the sessions of a failed call back, to be asked about first. */
export function takeBack(host: HostQueue, selection: Selection, now: number): void {
  for (const session of [...selection.tries, ...selection.registers]) {
    if (!session.isPending || session.place !== "trying") continue;
    session.mayBeStored = true;
    host.unsure.push(session);
  }
  for (const session of selection.tries) {
    if (session.isPooled) session.bucket.changeInFlight(-1, now);
    host.refresh(session.bucket);
  }
}

export function batchOf(
  host: HostQueue,
  engine: EngineContext,
  sessions: readonly Session[],
  isWeighted: boolean,
): WaiterBatch {
  const now = engine.clock.now();
  return {
    host: host.key,
    instance: engine.instance,
    policy: isWeighted ? host.weightedPolicy : host.policy,
    isSemaphore: host.isSemaphore,
    waiters: sessions.map((session) => waiterOf(session, now)),
  };
}

function waiterOf(session: Session, now: number): Waiter {
  const { id, bucket, arrivedAt, deadlineAt, limit } = session.claims;
  return {
    session: id,
    bucket,
    weight: session.bucket.weight,
    arrivedAt,
    ttlMs: Math.max(0, deadlineAt - now),
    openMs: session.openMs,
    // Only a newcomer can be refused: whoever was let in has a say in what the capacity is.
    limit: session.isHeard || session.isAdopted ? undefined : limit,
    isGrantable: session.isAwake,
  };
}

function takeUnsure(host: HostQueue, selection: Selection): void {
  const unsure = host.unsure.splice(0, MAX_BATCH);
  for (const session of unsure) if (session.isPending && session.place === "trying") selection.tries.push(session);
}

/** Newcomers in order of arrival; then, for places that may be free, those outside. */
function takeFresh(host: HostQueue, selection: Selection): void {
  let taken = 0;
  for (; taken < host.fresh.length && selection.tries.length + selection.registers.length < MAX_BATCH; taken++) {
    const session = host.fresh[taken] as Session;
    if (session.isPending && session.place === "fresh") newcomer(session, selection);
  }
  host.fresh.splice(0, taken);
  for (; host.offers > 0 && selection.tries.length + selection.registers.length < MAX_BATCH; host.offers--) {
    const session = host.takeOffer();
    if (session === undefined) break;
    session.isOffered = true;
    newcomer(session, selection);
  }
  host.offers = 0;
}

function newcomer(session: Session, { tries, registers, isWeighted }: Selection): void {
  const isTried = session.isAwake && !session.bucket.isDenied && !isWeighted;
  session.place = "trying";
  (isTried ? tries : registers).push(session);
}

/**
 * As many as there are slots to expect. Beside newcomers one at least, and one for each release on its way, so that slots
 * freed unheard go to the best-ranked and not to whoever came last. More would be refused: with no slot to expect, nobody is
 * sent in vain. Should more be free than expected, the cycle goes round.
 */
function takeBest(host: HostQueue, selection: Selection, now: number): void {
  const newcomers = selection.tries.length;
  const unheard = Math.min(newcomers, host.releasing);
  const expected = Math.max(host.knownFree + unheard, host.lookFor, Math.min(newcomers, 1));
  const wanted = Math.min(expected, host.policy.slots, MAX_BATCH);
  host.lookFor = 0;
  for (let taken = 0; taken < wanted; taken++) {
    const bucket = host.order.best(host.level, now);
    if (bucket === undefined) return;
    takeHead(host, bucket, selection, now);
  }
}

/**
 * The same at a hot host, in turns. A turn that finds no slot costs its bucket the turn and adds to its weight, so turns
 * taken in vain would not only burden the store but shuffle the buckets.
 */
function takeTurns(host: HostQueue, engine: EngineContext, selection: Selection, now: number): void {
  const { scheduler, pollIntervalMs } = engine.options();
  const quota = scheduler.maxProbesPerCycle ?? host.policy.slots;
  const expected = Math.max(host.knownFree, host.lookFor);
  const wanted = Math.min(host.quota.left(quota, host.knownFree, now, pollIntervalMs), expected, MAX_BATCH);
  host.lookFor = 0;
  for (let taken = 0; taken < wanted; taken++) {
    const bucket = host.turns.take(scheduler);
    if (bucket === undefined) return;
    takeHead(host, bucket, selection, now);
  }
}

/** As if it were granted: the next choice counts it, and the store's answer puts the account right. */
function takeHead(host: HostQueue, bucket: Session["bucket"], selection: Selection, now: number): void {
  const session = bucket.ready.pop();
  if (session === undefined) return;
  session.place = "trying";
  bucket.changeInFlight(1, now);
  host.refresh(bucket);
  selection.tries.push(session);
}
