/** A fairness scenario as data: which buckets want how many slots of one host. */
export interface Scenario {
  readonly name: string;
  readonly slots: number;
  /** The limit per bucket; absent for none. */
  readonly cap?: number;
  readonly groups: readonly Group[];
  /** When the active groups change. Each phase is measured and compared separately. */
  readonly phasesMs: readonly number[];
  /** The controls that are expected to miss the oracle here: counting grants, or first come, first served. */
  readonly fails: readonly ("fifo" | "count-grants")[];
}

/** Clients of one kind: of one bucket, or with a new bucket for every request. */
export interface Group {
  readonly name: string;
  readonly weight?: number;
  readonly holdMs: number;
  readonly isFreshBucketEach?: boolean;
  /** Closed loop: this number of clients, each of which asks again as soon as it has released its slot. */
  readonly clients?: number;
  /** Open loop: one request per interval, in milliseconds, whether or not the last one was served. */
  readonly everyMs?: number;
  /** The phases in which the bucket is active; absent for all. */
  readonly phases?: readonly number[];
}

/** The number of slots that a group would use on average if it were alone. */
export function demandOf({ clients, everyMs, holdMs, isFreshBucketEach }: Group, cap: number): number {
  if (everyMs !== undefined) return Math.min(cap, holdMs / everyMs);
  return isFreshBucketEach === true ? (clients ?? 0) : Math.min(cap, clients ?? 0);
}
