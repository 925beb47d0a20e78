/** A fairness scenario as data: which buckets want how many slots of one host. */
export interface Scenario {
  readonly name: string;
  readonly slots: number;
  /** Per bucket; absent: none. */
  readonly cap?: number;
  readonly groups: readonly Group[];
  /** When the groups that are present change: measured and compared phase by phase, from one moment to the next. */
  readonly phasesMs: readonly number[];
  /** The control that counts grants, or serves first come first, is expected to miss the oracle here. */
  readonly fails: readonly ("fifo" | "count-grants")[];
}

/** Clients of one kind: those of one bucket, or each with a new bucket for every request. */
export interface Group {
  readonly name: string;
  readonly weight?: number;
  readonly holdMs: number;
  readonly isFreshBucketEach?: boolean;
  /** Closed loop: this number of clients, each asking again as soon as it has given back. */
  readonly clients?: number;
  /** Open loop: a request at this interval in milliseconds, whether or not the last was served. */
  readonly everyMs?: number;
  /** The phases in which the bucket is active; absent: all. */
  readonly phases?: readonly number[];
}

/** The slots a group could use on average, if there were no other group. */
export function demandOf({ clients, everyMs, holdMs, isFreshBucketEach }: Group, cap: number): number {
  if (everyMs !== undefined) return Math.min(cap, holdMs / everyMs);
  return isFreshBucketEach === true ? (clients ?? 0) : Math.min(cap, clients ?? 0);
}
