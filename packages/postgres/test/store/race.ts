import { setTimeout as pause } from "node:timers/promises";
import type { PostgresStore } from "@slotkeeper/postgres";
import type { Client } from "pg";
import { violations } from "./audit.ts";
import { Contender } from "./contender.ts";

export interface RaceOptions {
  readonly stores: readonly PostgresStore[];
  readonly host: string;
  readonly slots: number;
  readonly workers: number;
  /** How many slots each worker takes, one after the other. */
  readonly grantsEach: number;
  readonly buckets: number;
}

export interface RaceResult {
  /** The commits that were refused. On the first one all workers but one are: all have read the host before it. */
  readonly conflicts: number;
  /** The most slots that the workers held at the same time, of the host and of one bucket. */
  readonly mostHeld: number;
  readonly mostOfBucket: number;
  /** What the auditor found. */
  readonly seen: readonly string[];
}

/** Slots that are held, counted outside the database: from the answer with the slot until the call that releases it. */
export class Holds {
  readonly #held = new Map<string, number>();
  mostHeld = 0;
  mostOfBucket = 0;

  take(bucket: string): void {
    this.#held.set(bucket, (this.#held.get(bucket) ?? 0) + 1);
    this.mostOfBucket = Math.max(this.mostOfBucket, this.#held.get(bucket) as number);
    const all = [...this.#held.values()].reduce((sum, count) => sum + count, 0);
    this.mostHeld = Math.max(this.mostHeld, all);
  }

  giveBack(bucket: string): void {
    this.#held.set(bucket, (this.#held.get(bucket) as number) - 1);
  }
}

/** Runs the auditor during the work. */
export async function audited(auditor: Client, work: () => Promise<unknown>): Promise<string[]> {
  const seen = new Set<string>();
  let isOver = false;
  const audit = async () => {
    do {
      for (const name of await violations(auditor)) seen.add(name);
      await pause(5);
    } while (!isOver);
  };
  const auditing = audit();
  try {
    await work();
  } finally {
    isOver = true;
    await auditing;
  }
  return [...seen];
}

/** Returns a function that resolves for every caller once it was called this number of times. */
function meetingOf(count: number): () => Promise<void> {
  let arrived = 0;
  let meet = (): void => {};
  const met = new Promise<void>((resolve) => (meet = resolve));
  return () => {
    if (++arrived === count) meet();
    return met;
  };
}

/**
 * Workers that acquire and release as fast as they can, spread over the stores. The host must be new: then all workers
 * try the first commit. Each continues until it had its slots, so no count depends on how the connections take turns.
 */
export async function race(options: RaceOptions, auditor: Client): Promise<RaceResult> {
  const { stores, host, slots, workers, grantsEach, buckets } = options;
  const holds = new Holds();
  const allHaveRead = meetingOf(workers);
  const contenders = Array.from({ length: workers }, (_, at) => {
    return new Contender(stores[at % stores.length] as PostgresStore, host, `i${at}`, slots, allHaveRead);
  });
  const work = async (contender: Contender, worker: number) => {
    for (let [granted, round] = [0, 0]; granted < grantsEach; round++) {
      const bucket = `b${(worker * 7 + round * 3) % buckets}`;
      const lease = await contender.take(bucket);
      if (lease === undefined) continue;
      granted++;
      holds.take(bucket);
      await pause(0);
      holds.giveBack(bucket);
      await contender.giveBack(lease);
    }
  };
  const seen = await audited(auditor, () => Promise.all(contenders.map(work)));
  const { mostHeld, mostOfBucket } = holds;
  return { mostHeld, mostOfBucket, conflicts: contenders.reduce((sum, one) => sum + one.conflicts, 0), seen };
}
