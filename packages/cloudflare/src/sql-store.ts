import { type Commit, type Head, type HostStore, type KeptCommit, type KeptHost, MemoryStore } from "@slotkeeper/queue";
import { aheadOf, decodeEntries, isDeferrable, Restored, ResumedClock, snapshotOf } from "@slotkeeper/server/portable";
import type { Clock } from "slotkeeper";
import type { HostRows } from "./host-rows.ts";
import { bodiesOf } from "./row-bodies.ts";

/**
 * The store of one host, in the SQLite storage of its object: a memory store whose accepted commits are rows, with the
 * entries of the journal.
 *
 * What can never happen:
 *   SQL1  An answered grant is lost. A commit is written before it takes effect in memory, and the runtime sends no answer
 *         before everything that was written is stored (the output gate of the object). If the write fails, the commit
 *         fails, and the engine repeats it.
 *   SQL2  A fence is given twice. The fence of the last row is in its head. If the storage was deleted because the host was
 *         unused, fences start again at the time in microseconds, which is above all fences of the past.
 *   SQL3  More slots are held than the limit allows. The whole book is restored before the first call is decided, and the
 *         memory store checks every commit (P2). There is one object of a name in the world.
 *   SQL4  A part of a commit is kept (ROWS3).
 *
 * SQL5  A commit costs one row. Every `ROWS_PER_SNAPSHOT` rows, the row also has the whole host, so a snapshot costs none.
 *       A host with thousands of waiters takes some rows more.
 * SQL6  A commit that only records waiters and use (`isDeferrable`) is written with the next row. It may be lost with the
 *       memory of the object: the token of a session contains its arrival, so it returns to its place.
 */
export class SqlStore implements HostStore {
  readonly isShared = false;
  readonly clock: ResumedClock;
  /** Made once for each object and kept. The first key signs query tokens. */
  readonly tokenKeys: readonly string[];
  readonly #rows: HostRows;
  readonly #memory: MemoryStore;
  /** Commits that are written with the next row. */
  #deferred: Pick<KeptCommit, "host" | "tag" | "changes">[] = [];
  readonly #heads = new Map<string, Head>();

  constructor({ rows, clock, graceMs, newTokenKey }: SqlStoreInit) {
    const restored = new Restored();
    for (const body of rows.read()) for (const entry of decodeEntries(body)) restored.apply(entry);
    const { lastAt, keys, fenceFloor } = restored;
    this.#rows = rows;
    this.clock = new ResumedClock(clock, aheadOf({ lastAt, start: undefined }, undefined, clock.now()));
    this.tokenKeys = keys ?? [newTokenKey()];
    const hosts = [...restored.hosts(this.clock.now())];
    for (const { host, head } of hosts) this.#heads.set(host, head);
    this.#memory = new MemoryStore({
      clock: this.clock,
      hosts,
      fenceFloor,
      graceMs,
      beforeCommit: (commit) => this.#keep(commit),
      onCommit: (kept) => this.#forget(kept),
    });
  }

  /** The host as it is now; empty if there is none. */
  images(): Iterable<KeptHost> {
    return this.#memory.images();
  }

  commit: HostStore["commit"] = (commit) => this.#memory.commit(commit);
  read: HostStore["read"] = (host, since) => this.#memory.read(host, since);
  beat: HostStore["beat"] = (beat) => this.#memory.beat(beat);
  watch: HostStore["watch"] = (instance, listener) => this.#memory.watch(instance, listener);
  peek: HostStore["peek"] = (hosts) => this.#memory.peek(hosts);
  hostKeys: HostStore["hostKeys"] = () => this.#memory.hostKeys();
  totals: HostStore["totals"] = () => this.#memory.totals();
  instances: HostStore["instances"] = () => this.#memory.instances();
  cleanup: HostStore["cleanup"] = (request) => this.#memory.cleanup(request);

  /** SQL1: called before the commit takes effect. */
  #keep({ host, tag, changes }: Commit): void {
    if (changes.head === undefined) return;
    const before = this.#heads.get(host);
    const isLater = isDeferrable({ before, changes }) && this.#deferred.length < MOST_DEFERRED;
    if (!isLater) this.#write({ host, tag, changes });
    else this.#deferred.push({ host, tag, changes });
    this.#heads.set(host, changes.head);
  }

  /** If this is not written, the host is only forgotten later. */
  #forget({ host, tag, changes }: KeptCommit): void {
    if (changes.head !== undefined) return;
    this.#heads.delete(host);
    this.#write({ host, tag, changes });
  }

  #write(commit: Pick<KeptCommit, "host" | "tag" | "changes">): void {
    const entry = { kind: "commit", ...commit } as const;
    if (!this.#rows.isCreated || this.#rows.sinceSnapshot >= ROWS_PER_SNAPSHOT) {
      // The snapshot is the state before this commit, with what was deferred.
      this.#rows.restart(bodiesOf([...snapshotOf(this.tokenKeys, undefined, this.#memory), entry]));
    } else {
      this.#rows.append(bodiesOf([...this.#deferred.map((one) => ({ kind: "commit", ...one }) as const), entry]));
    }
    this.#deferred = [];
  }
}

export interface SqlStoreInit {
  readonly rows: HostRows;
  readonly clock: Clock;
  /** How long waiters from before a restart keep their places until their clients poll again. */
  readonly graceMs: number;
  readonly newTokenKey: () => string;
}

/** At most this number of rows is read when the object starts. */
const ROWS_PER_SNAPSHOT = 64;
/** A row has at most 2 MB. Some hundred waiters take some ten kilobytes. */
const MOST_DEFERRED = 256;
