import { setTimeout as pause } from "node:timers/promises";
import type { PostgresStore } from "@slotkeeper/postgres";
import { type HostPolicy, resolveHost, resolveOptions, type SlotStore, type Waiter } from "@slotkeeper/queue";
import type { Client } from "pg";
import { brokenSums, violations } from "./audit.ts";

const base = resolveHost(resolveOptions(), undefined).policy;
const none = Number.POSITIVE_INFINITY;
export const OPEN_LIMITS: HostPolicy = { ...base, slotsPerBucket: none, waiters: none, leaseMs: 20_000 };

export interface RaceOptions {
  readonly stores: readonly PostgresStore[];
  readonly policy: HostPolicy;
  readonly isSemaphore?: boolean;
  readonly host: string;
  /** One worker for each connection. */
  readonly workers: number;
  readonly triesEach: number;
  readonly buckets: number;
  readonly withStatus?: number;
}

export interface RaceResult {
  tries: number;
  granted: number;
  /** The most slots ever in the workers' hands at once, of the host and of a bucket. */
  mostHeld: number;
  mostOfBucket: number;
  seen: string[];
}

/** Workers that take and give back as fast as they can, each counting what is in all hands; and one who audits meanwhile. */
export async function race(options: RaceOptions, auditor: Client): Promise<RaceResult> {
  const result: RaceResult = { tries: 0, granted: 0, mostHeld: 0, mostOfBucket: 0, seen: [] };
  const held = new Map<string, number>();
  let isOver = false;
  const audit = async () => {
    while (!isOver) {
      result.seen.push(...(await violations(auditor)), ...(await brokenSums(auditor)));
      await pause(5);
    }
  };
  const auditing = audit();
  try {
    await Promise.all(Array.from({ length: options.workers }, (_, at) => work(options, at, held, result)));
  } finally {
    isOver = true;
    await auditing;
  }
  return result;
}

async function work(
  options: RaceOptions,
  worker: number,
  held: Map<string, number>,
  result: RaceResult,
): Promise<void> {
  const { stores, host, policy, triesEach, buckets, isSemaphore = false } = options;
  const store = stores[worker % stores.length] as SlotStore;
  for (let round = 0; round < triesEach; round++) {
    const waiters = Array.from({ length: 1 + (round % 3) }, (_, at) =>
      waiterOf(`${host}/${worker}/${round}/${at}`, `b${(worker * 7 + round * 3 + at) % buckets}`, round),
    );
    const batch = { host, instance: `i${worker % stores.length}`, policy, isSemaphore, waiters };
    const { verdicts } = await store.tryAcquire(batch);
    result.tries += waiters.length;
    const leaving: string[] = [];
    for (const [at, verdict] of verdicts.entries()) {
      const { session, bucket } = waiters[at] as Waiter;
      if (verdict.status === "ACQUIRED") await hold(options, verdict.slot.slotToken, bucket, held, result, store);
      else leaving.push(session);
    }
    const sessions = leaving.map((session) => ({ session, end: "canceled" as const, ttlMs: 1_000 }));
    if (round % 2 === 0) await store.withdraw({ host, instance: batch.instance, policy, sessions });
    else await store.withdraw({ host, instance: batch.instance, policy, sessions: sessions.slice(1) });
  }
}

/** Counts before it gives back: what is counted here was never more than what the database had given out. */
async function hold(
  { host, policy, withStatus }: RaceOptions,
  slotToken: string,
  bucket: string,
  held: Map<string, number>,
  result: RaceResult,
  store: SlotStore,
): Promise<void> {
  held.set(bucket, (held.get(bucket) ?? 0) + 1);
  result.granted++;
  result.mostOfBucket = Math.max(result.mostOfBucket, held.get(bucket) as number);
  result.mostHeld = Math.max(
    result.mostHeld,
    [...held.values()].reduce((sum, count) => sum + count, 0),
  );
  await pause(0);
  held.set(bucket, (held.get(bucket) as number) - 1);
  const request = { slotToken, host, policy, hitAgoMs: undefined, status: withStatus, uncollectedBy: undefined };
  await Promise.all([store.release(request), store.release(request)]);
}

function waiterOf(session: string, bucket: string, arrivedAt: number): Waiter {
  return { session, bucket, weight: 1, arrivedAt, ttlMs: 1_000, openMs: 100, isGrantable: true };
}
