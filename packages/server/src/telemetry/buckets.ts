/** The bounds of the histograms, each with its reason. */

/** An upper bound and why it is one. */
export type Bucket = readonly [bound: number, reason: string];

export const SECONDS_OF_WAIT: readonly Bucket[] = [
  [0.001, "granted at once: a slot was free"],
  [0.005, "granted at once by a busy service"],
  [0.01, "granted at once, after a call to a store over the network"],
  [0.025, "a good hand-over: a freed slot is idle for less than 15 ms"],
  [0.05, "an offer to a waiter of another instance lapsed"],
  [0.1, "people do not notice a wait up to here"],
  [0.25, "half of `pollIntervalMs`"],
  [0.5, "`pollIntervalMs`: a failed call to the store was repeated"],
  [1, "one beat: a notification was lost; or `collectMs`: another client did not fetch the slot"],
  [2.5, "a short queue"],
  [5, "people give up about here"],
  [10, "half of the default `maxWaitMs`"],
  [20, "the default `maxWaitMs`; only a longer `maxWaitMs` and named semaphores are above"],
  [30, "the default lease: the slot came from a holder that died"],
  [60, "a minute: batch work"],
];

export const SECONDS_OF_HOLD: readonly Bucket[] = [
  [0.01, "the slot was hardly used"],
  [0.05, "a fast upstream"],
  [0.1, "an ordinary request"],
  [0.25, "an ordinary request to a distant upstream"],
  [0.5, "a slow request"],
  [1, "a slow request; typical `minSlotHoldMs`"],
  [2.5, "a small download"],
  [5, "a larger download"],
  [10, "long for a request"],
  [30, "the default lease (`zombieTimeoutSeconds`); a holder must renew to get beyond it"],
  [60, "two leases"],
  [300, "five minutes: transfers"],
  [3600, "the default `maxHoldSeconds`, the longest possible hold"],
];

export const SECONDS_OF_CALL: readonly Bucket[] = [
  [0.0001, "the memory store"],
  [0.0005, "the memory store, a large batch"],
  [0.001, "a journal on a fast disk"],
  [0.0025, "a database on the same machine"],
  [0.005, "a database in the same rack"],
  [0.01, "a database in the same region"],
  [0.025, "a slow disk under the journal; a busy database"],
  [0.05, "the call waited for a lock"],
  [0.1, "noticeable in every wait for a slot"],
  [0.25, "half of `pollIntervalMs`"],
  [0.5, "`pollIntervalMs`: a first call no longer waits for its decision"],
  [1, "something is wrong"],
  [5, "above the timeout of a database call (3 s): a connection was lost, or the store hangs"],
];

export const RECORDS_OF_A_COMMIT: readonly Bucket[] = [
  [1, "one record: a client left the queue or came back"],
  [2, "a grant on an idle host: the lease and the bucket's account"],
  [4, "a hand-over: the released slot, the next grant, the accounts of both buckets"],
  [8, "a hand-over with new waiters"],
  [16, "a burst, or several releases decided together"],
  [32, "many calls in one turn of the event loop"],
  [64, "unusual: an instance died, or a breaker opened"],
  [256, "all waiters of a host changed at once"],
];
