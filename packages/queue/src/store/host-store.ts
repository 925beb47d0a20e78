import type { BookImage, Changes, RecordKind, RecordOf } from "../book/records.ts";

/**
 * The port between the engine and the place that keeps the state of hosts. A store decides nothing: it compares and swaps.
 * One conformance suite runs on every implementation.
 *
 * Promises of a store, each under any interleaving of calls from any number of instances:
 *   P1 commits of a host form one sequence: a commit is accepted only on the tag it was decided on, and applied whole
 *   P2 a commit that adds a lease or an offer is refused while more than the head's slots would be occupied
 *   P3 fences of a host only grow, also when the host was forgotten in between
 *   P4 sending an accepted commit again answers ok, as long as the tail remembers its tag
 *   P5 `now` of a host never goes back; a commit's `now` is at most the store's clock and at most 1 s behind it
 *   P6 an answer was kept before it was given: after a crash the state is one that some commit left
 *   P7 no call on one host waits for another host
 *   P8 a call that fails may have happened; repeating it is safe
 */
export interface HostStore {
  /** `own`: the clock of the process is the store's, and the store ends with it. `shared`: the store has its own. */
  readonly clock: "own" | "shared";
  /** What was committed since `since`, or the whole host. */
  read(host: string, since: Tag | undefined): Promise<ReadReply>;
  /** A store of the same process may answer at once: the cycle then goes on without a pause. Only a promise can fail. */
  commit(commit: Commit): CommitReply | Promise<CommitReply>;
  /** Says that an instance lives, and asks which of its hosts others have changed. */
  beat(beat: Beat): Promise<BeatReply>;
  /** Commits of others that name this instance in `wake`. A hint: it may be lost. Returns how to stop. */
  watch(instance: string, listener: (notice: CommitNotice) => void): () => void;
  /** Reads hosts for people; changes nothing. Unknown hosts are missing. */
  peek(hosts: readonly string[]): Promise<ReadonlyMap<string, BookImage>>;
  hostKeys(): Promise<readonly string[]>;
  totals(): Promise<StoreTotals>;
  instances(): Promise<readonly InstanceView[]>;
  /** Deletes what no instance will: hosts without users, and instances that left long ago. Each step runs even if another failed. */
  cleanup(request: CleanupRequest): Promise<CleanupReply>;
}

/** `<count>.<random>`: the count orders the commits of a host, the random part distinguishes histories after a failover. */
export type Tag = string;

/** A set of changes, based on the tag that was decided on. */
export interface Commit {
  readonly host: string;
  readonly instance: string;
  /** The state it was decided on; undefined: the host was not known. */
  readonly base: Tag | undefined;
  readonly tag: Tag;
  /** Store time of the decision. */
  readonly now: number;
  readonly changes: Changes;
  /** Instances to notify: waiters of theirs were offered a slot, or ended, or they wait there and must know the newest tag. */
  readonly wake: readonly string[];
  /** Conflicts in a row before this try. From the third on a refused commit reserves the next one for the instance. */
  readonly conflicts: number;
  /** The book that was decided on, with the changes. A store of the same process may read it instead of keeping its records twice. */
  readonly book?: RecordsAt;
}

/** The records of a host as the commit `tag` left them: the last one, for as long as no other was accepted. */
export interface RecordsAt {
  allAt<K extends RecordKind>(tag: Tag, kind: K): Iterable<RecordOf<K>>;
}

/** Whether a commit was accepted; a refusal brings what the caller has missed. */
export type CommitReply =
  | { readonly isOk: true; readonly now: number }
  | ({ readonly isOk: false; readonly reason: Refusal } & ReadReply);

/**
 * Why a commit was refused: `conflict`, another came first; `reserved`, the next commit is another instance's (try again in
 * `RESERVED_MS`); `clock`, its `now` is out of bounds; `slots`, P2 or P3 would break: the book it was decided on is wrong.
 */
export type Refusal = "conflict" | "reserved" | "clock" | "slots";

/** The answer to a read: how to get from the caller's state to the store's. */
export interface ReadReply {
  /** The store's clock. */
  readonly now: number;
  /** Undefined: there is no such host. */
  readonly tag: Tag | undefined;
  readonly tail: Tail;
  /** Of a host that is not known: its fences must be above this. Absent: the clock is enough. */
  readonly fenceFloor?: number;
}

/** How to get from the caller's state to the store's: the commits in between, in order, or everything. */
export type Tail =
  | { readonly kind: "changes"; readonly commits: readonly Changes[] }
  | { readonly kind: "book"; readonly book: BookImage | undefined };

/** What an instance sends regularly to show that it is alive. */
export interface Beat {
  readonly instance: string;
  /** For how long it is believed alive without another beat; 0: it leaves. */
  readonly ttlMs: number;
  /** A JSON object the store keeps and does not read. */
  readonly about: InstanceAbout;
  /** Hosts where sessions of this instance wait, as it last saw them. */
  readonly hosts: readonly (readonly [host: string, tag: Tag | undefined])[];
}

/** The answer to a beat. */
export interface BeatReply {
  readonly now: number;
  /** Those whose last beat is not over. */
  readonly instances: readonly InstanceView[];
  /** Of the beat's hosts, those whose tag is another now. */
  readonly changed: readonly string[];
}

/** What an instance says about itself: version, counts, address. */
export type InstanceAbout = { readonly [key: string]: string | number | boolean };

/** An instance as the store knows it. */
export interface InstanceView {
  readonly instance: string;
  /** By the store's clock. */
  readonly seenAgoMs: number;
  readonly about: InstanceAbout;
}

/** Sent to a woken instance. With `base` and `changes` an instance whose book is at `base` need not read. */
export interface CommitNotice {
  readonly host: string;
  readonly base?: Tag | undefined;
  readonly tag?: Tag;
  readonly changes?: Changes;
}

/** What `cleanup` may delete. */
export interface CleanupRequest {
  /** Hosts unused for this long may be deleted. */
  readonly idleMs: number;
}

/** What `cleanup` deleted, and which of its steps failed. */
export interface CleanupReply {
  readonly hosts: number;
  readonly failures: readonly unknown[];
}

/** Sums over all hosts, by the store's clock: what time has ended is not counted. */
export interface StoreTotals {
  readonly hosts: number;
  /** Limits, summed. */
  readonly slots: number;
  readonly inFlight: number;
  readonly waiting: number;
  /** Hosts whose breaker is not closed. */
  readonly open: number;
  /** Hosts whose next release would be spaced from the last. */
  readonly spaced: number;
}

/** How many commits a store remembers for each host. An older base gets the whole book. */
export const TAIL_LENGTH = 64;
/** How long a reserved commit is kept for its instance. */
export const RESERVED_MS = 50;
/** From this many conflicts in a row on. */
export const RESERVES_AFTER = 3;
/** How far behind the store's clock a commit's `now` may be. */
export const CLOCK_SLACK_MS = 1_000;
