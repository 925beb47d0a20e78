import type { BookImage, Changes } from "../book/records.ts";

/**
 * The interface between the engine and the store that keeps the state of hosts. A store makes no decisions: it compares
 * and swaps. One conformance suite runs on every implementation.
 *
 * The promises of a store, for any interleaving of calls from any number of instances:
 *   P1 The commits of a host form one sequence. A commit is accepted only on the tag it was decided on, and applied as a whole.
 *   P2 A commit that adds a lease or an offer is refused if more slots than the head allows would be occupied.
 *   P3 The fences of a host only grow, even if the host was forgotten in between.
 *   P4 An accepted commit that is sent again is answered with ok, as long as it is among the last `TAIL_LENGTH`.
 *   P5 `now` of a host never goes back. A commit's `now` is at most the store's clock, and at most 1 s behind it.
 *   P6 The store keeps a change before it answers. After a crash the state is one that some commit produced.
 *   P7 No call for one host waits for another host.
 *   P8 A call that fails may have taken effect. Repeating it is safe.
 */
export interface HostStore {
  /** Other processes may use the store, and it has a clock of its own. If not, it has the clock of this process and ends with it. */
  readonly isShared: boolean;
  /** Returns what has changed since `since`, or the whole host. */
  read(host: string, since: Tag | undefined): Promise<ReadReply>;
  /**
   * A store in the same process may answer without a promise; then the cycle continues without a pause. Only a promise
   * can fail.
   */
  commit(commit: Commit): CommitReply | Promise<CommitReply>;
  /** Reports that an instance is alive, and asks which of its hosts others have changed. */
  beat(beat: Beat): Promise<BeatReply>;
  /**
   * Calls `listener` for commits of others that name this instance in `wake`. A notice is a hint and may be lost.
   * Returns a function that stops the calls.
   */
  watch(instance: string, listener: (notice: CommitNotice) => void): () => void;
  /** Reads hosts for operators, and changes nothing. Unknown hosts are missing in the result. */
  peek(hosts: readonly string[]): Promise<ReadonlyMap<string, BookImage>>;
  hostKeys(): Promise<readonly string[]>;
  totals(): Promise<StoreTotals>;
  instances(): Promise<readonly InstanceView[]>;
  /**
   * Deletes what no instance deletes: hosts without users, and instances that left long ago. Each step runs even if
   * another one failed.
   */
  cleanup(request: CleanupRequest): Promise<CleanupReply>;
}

/** `<count>.<random>`: the count orders the commits of a host; the random part distinguishes histories after a failover. */
export type Tag = string;

/** A set of changes, based on the tag that was decided on. */
export interface Commit {
  readonly host: string;
  readonly instance: string;
  /** The tag that the decision was based on. Undefined: the host was not known. */
  readonly base: Tag | undefined;
  readonly tag: Tag;
  /** Store time of the decision. */
  readonly now: number;
  readonly changes: Changes;
  /**
   * Other instances are alive. If not, no instance will ask for these changes, and a store need not keep their names:
   * it answers a later read from an earlier tag with the whole book.
   */
  readonly hasOthers: boolean;
  /** Instances to notify: their waiters got an offer or ended, or they have waiters at the host and need the newest tag. */
  readonly wake: readonly string[];
  /**
   * The number of consecutive conflicts before this attempt. From the third on, a refused commit reserves the next one
   * for the instance.
   */
  readonly conflicts: number;
}

/** Whether a commit was accepted. A refusal contains what the caller has missed. */
export type CommitReply =
  | { readonly isOk: true; readonly now: number }
  | ({ readonly isOk: false; readonly reason: Refusal } & ReadReply);

/**
 * Why a commit was refused:
 * - `conflict`: another commit came first.
 * - `reserved`: the next commit is reserved for another instance; try again in `RESERVED_MS`.
 * - `clock`: its `now` is out of bounds.
 * - `slots`: P2 or P3 would break, so the book of the decision is wrong.
 */
export type Refusal = "conflict" | "reserved" | "clock" | "slots";

/** The answer to a read: how to get from the caller's state to the store's. */
export interface ReadReply {
  /** The store's clock. */
  readonly now: number;
  /** Undefined: there is no such host. */
  readonly tag: Tag | undefined;
  readonly tail: Tail;
  /** For a host that is not known: its fences must be above this. Absent: the clock is enough. */
  readonly fenceFloor?: number;
}

/**
 * The difference between the caller's state and the store's. `changes`: the head, and every record that the commits in
 * between named, as it is now; a deleted one may be unknown to the caller. `book`: the store no longer has the caller's
 * tag. Undefined: there is no such host.
 */
export type Tail =
  | { readonly kind: "changes"; readonly changes: Changes }
  | { readonly kind: "book"; readonly book: BookImage | undefined };

/** What an instance sends regularly to show that it is alive. */
export interface Beat {
  readonly instance: string;
  /** How long the instance counts as alive without another beat. 0: it stops. */
  readonly ttlMs: number;
  /** A JSON object that the store keeps but does not interpret. */
  readonly about: InstanceAbout;
  /** Hosts where sessions of this instance wait, with the tag that it knows. */
  readonly hosts: readonly (readonly [host: string, tag: Tag | undefined])[];
}

/** The answer to a beat. */
export interface BeatReply {
  readonly now: number;
  /** The instances whose last beat is still valid. */
  readonly instances: readonly InstanceView[];
  /** The hosts of the beat whose tag has changed. */
  readonly changed: readonly string[];
}

/** What an instance reports about itself: version, counts, address. */
export type InstanceAbout = { readonly [key: string]: string | number | boolean };

/** An instance as the store knows it. */
export interface InstanceView {
  readonly instance: string;
  /** By the store's clock. */
  readonly seenAgoMs: number;
  readonly about: InstanceAbout;
}

/** Sent to a woken instance. If its book is at `base`, it can apply `changes` without a read. */
export interface CommitNotice {
  readonly host: string;
  readonly base?: Tag | undefined;
  readonly tag?: Tag;
  readonly changes?: Changes;
}

/** What `cleanup` may delete. */
export interface CleanupRequest {
  /** Hosts that were unused for this long may be deleted. */
  readonly idleMs: number;
}

/** What `cleanup` deleted, and which of its steps failed. */
export interface CleanupReply {
  readonly hosts: number;
  readonly failures: readonly unknown[];
}

/** Sums over all hosts, by the store's clock. What has ended by time is not counted. */
export interface StoreTotals {
  readonly hosts: number;
  /** The sum of the limits. */
  readonly slots: number;
  readonly inFlight: number;
  readonly waiting: number;
  /** Hosts whose breaker is not closed. */
  readonly open: number;
  /** Hosts where spacing would delay the next release. */
  readonly spaced: number;
  /** Hosts that an operator has paused. */
  readonly paused: number;
}

/** Whether a grant could be stored now, and why not. `Problem`: the codes of what can be wrong. Any caller may read `detail`; `error` is for the log. */
export type StoreHealth<Problem extends string = string> =
  | { readonly isReady: true }
  | { readonly isReady: false; readonly reason: Problem; readonly detail: string; readonly error: unknown };

/** Numbers of the store at this instance, for metrics: those that it has. Counts only grow. */
export interface StoreGauges {
  /** Its connections. */
  readonly pool?: {
    readonly size: number;
    readonly idle: number;
    /** Calls that wait for a connection now. */
    readonly waiting: number;
    /** Calls that had to wait for a connection, and for how long in total. */
    readonly waits: number;
    readonly waitedMs: number;
  };
  /** Calls that wait for earlier calls of their host. */
  readonly lanes?: { readonly waiting: number; readonly waits: number };
  /** Its connection for notifications. `isUp` is undefined until the first test of it. */
  readonly listener?: { readonly isUp: boolean | undefined; readonly losses: number };
}

/** For how many commits of each host a store keeps the tag and the names of the changed records. */
export const TAIL_LENGTH = 64;
/** How long a commit stays reserved for an instance. */
export const RESERVED_MS = 50;
/** The number of consecutive conflicts after which a commit is reserved. */
export const RESERVES_AFTER = 3;
/** How far behind the store's clock a commit's `now` may be. */
export const CLOCK_SLACK_MS = 1_000;
