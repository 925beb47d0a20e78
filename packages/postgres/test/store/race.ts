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
  readonly triesEach: number;
  readonly buckets: number;
}

export interface RaceResult {
  readonly granted: number;
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
  granted = 0;

  take(bucket: string): void {
    this.granted++;
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

/** Workers that acquire and release as fast as they can, spread over the stores. */
export async function race(options: RaceOptions, auditor: Client): Promise<RaceResult> {
  const { stores, host, slots, workers, triesEach, buckets } = options;
  const holds = new Holds();
  const contenders = Array.from({ length: workers }, (_, at) => {
    return new Contender(stores[at % stores.length] as PostgresStore, host, `i${at}`, slots);
  });
  const work = async (contender: Contender, worker: number) => {
    for (let round = 0; round < triesEach; round++) {
      const bucket = `b${(worker * 7 + round * 3) % buckets}`;
      const lease = await contender.take(bucket);
      if (lease === undefined) continue;
      holds.take(bucket);
      await pause(0);
      holds.giveBack(bucket);
      await contender.giveBack(lease);
    }
  };
  const seen = await audited(auditor, () => Promise.all(contenders.map(work)));
  const { granted, mostHeld, mostOfBucket } = holds;
  return { granted, mostHeld, mostOfBucket, conflicts: contenders.reduce((sum, one) => sum + one.conflicts, 0), seen };
}
