/** The bounds of the histograms, each with its reason. */

/** An upper bound and why it is one. */
export type Bucket = readonly [bound: number, reason: string];

export const SECONDS_OF_WAIT: readonly Bucket[] = [
  [0.001, "granted at once: a slot was free"],
  [0.005, "one turn of a busy service"],
  [0.01, "the store was asked over a network"],
  [0.025, "idle time of a freed slot that is still good (15 ms) lies below"],
  [0.05, "an offer to a waiter of another instance lapses"],
  [0.1, "a person does not notice"],
  [0.25, "half a poll interval: pushes come through"],
  [0.5, "a whole poll interval (`pollIntervalMs`): above it pushes may be lost"],
  [1, "`collectMs`: slots that were not fetched and granted again"],
  [2.5, "a queue, but a short one"],
  [5, "people give up"],
  [10, "half the default `maxWaitMs`"],
  [20, "the default `maxWaitMs`: above it only longer settings and semaphores"],
  [30, "the default lease: holders are dying"],
  [60, "a minute: batch work"],
];

export const SECONDS_OF_HOLD: readonly Bucket[] = [
  [0.01, "the slot was hardly used"],
  [0.05, "a fast upstream"],
  [0.1, "an ordinary request"],
  [0.25, "an ordinary request, far away"],
  [0.5, "a slow request"],
  [1, "a slow request; typical `minSlotHoldMs`"],
  [2.5, "a download of some size"],
  [5, "a download of some size"],
  [10, "long for a request"],
  [30, "the default lease (`zombieTimeoutSeconds`): above it holders renew"],
  [60, "two leases"],
  [300, "five minutes: transfers"],
  [3600, "the default `maxHoldSeconds`: nothing is held longer"],
];

export const SECONDS_OF_CALL: readonly Bucket[] = [
  [0.0001, "the memory store"],
  [0.0005, "the memory store, a large batch"],
  [0.001, "a journal on a fast disk"],
  [0.0025, "a database on the same machine"],
  [0.005, "a database in the same rack"],
  [0.01, "a database in the same region"],
  [0.025, "a slow disk under the journal; a busy database"],
  [0.05, "a lock was waited for"],
  [0.1, "noticeable in every wait"],
  [0.25, "half a poll interval"],
  [0.5, "a poll interval: the breaker check gives up here"],
  [1, "something is wrong"],
  [5, "a connection was lost or the store hangs"],
];

export const RECORDS_OF_A_COMMIT: readonly Bucket[] = [
  [1, "one record: a poll came or went"],
  [2, "a grant on an idle host: the lease and the bucket's account"],
  [4, "a hand-over: the released slot, the next grant, their accounts"],
  [8, "a hand-over with newcomers"],
  [16, "a burst, or several releases decided together"],
  [32, "many callers in one turn of the service"],
  [64, "more than usual: an instance died, or a breaker opened"],
  [256, "the waiters of a whole host changed at once"],
];
