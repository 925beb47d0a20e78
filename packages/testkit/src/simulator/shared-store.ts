import {
  type Beat,
  type BeatReply,
  type BookImage,
  type CleanupReply,
  type CleanupRequest,
  type Commit,
  type CommitNotice,
  type CommitReply,
  type HostStore,
  type InstanceView,
  type KeptCommit,
  type KeptHost,
  MemoryStore,
  type ReadReply,
  type StoreTotals,
  type Tag,
} from "@slotkeeper/queue";
import type { Clock } from "slotkeeper";

/** The store after one of its commits. */
interface Moment {
  readonly hosts: readonly KeptHost[];
  readonly fenceFloor: number;
}

/** The largest number of commits that a failover can lose. */
const LONGEST_LOSS = 12;
/** How long a busy instance counts as alive without a beat. */
const BEAT_TTL_MS = 3_500;

/** The database of the fleet: a memory store with its own clock, which can fail over to a copy that lags behind. */
export class SharedStore implements HostStore {
  readonly isShared = true;
  readonly #clock: Clock;
  readonly #onCommit: (kept: KeptCommit) => void;
  readonly #watches = new Map<
    object,
    { instance: string; listener: (notice: CommitNotice) => void; stop: () => void }
  >();
  #past: Moment[] = [{ hosts: [], fenceFloor: 0 }];
  #store: MemoryStore;
  /** True while a copy takes over: nothing answers. */
  isDown = false;

  constructor(clock: Clock, onCommit: (kept: KeptCommit) => void) {
    this.#clock = clock;
    this.#onCommit = onCommit;
    this.#store = this.#open(this.#past[0] as Moment);
  }

  /** The current state of every host. */
  images(): readonly KeptHost[] {
    return (this.#past.at(-1) as Moment).hosts;
  }

  /** The copy takes over without the last `commits`. Returns how many were lost. */
  failOver(commits: number): number {
    const lost = Math.min(commits, this.#past.length - 1);
    if (lost > 0) this.#past = this.#past.slice(0, -lost);
    this.#store = this.#open(this.#past.at(-1) as Moment);
    for (const watch of this.#watches.values()) {
      watch.stop();
      watch.stop = this.#store.watch(watch.instance, watch.listener);
    }
    return lost;
  }

  async read(host: string, since: Tag | undefined): Promise<ReadReply> {
    this.#check();
    return this.#store.read(host, since);
  }

  async commit(commit: Commit): Promise<CommitReply> {
    this.#check();
    return this.#store.commit(commit);
  }

  async beat(beat: Beat): Promise<BeatReply> {
    this.#check();
    return this.#store.beat(beat);
  }

  watch(instance: string, listener: (notice: CommitNotice) => void): () => void {
    const key = {};
    this.#watches.set(key, { instance, listener, stop: this.#store.watch(instance, listener) });
    return () => {
      this.#watches.get(key)?.stop();
      this.#watches.delete(key);
    };
  }

  peek(hosts: readonly string[]): Promise<ReadonlyMap<string, BookImage>> {
    return this.#store.peek(hosts);
  }

  hostKeys(): Promise<readonly string[]> {
    return this.#store.hostKeys();
  }

  totals(): Promise<StoreTotals> {
    return this.#store.totals();
  }

  instances(): Promise<readonly InstanceView[]> {
    return this.#store.instances();
  }

  async cleanup(request: CleanupRequest): Promise<CleanupReply> {
    this.#check();
    return this.#store.cleanup(request);
  }

  #check(): void {
    if (this.isDown) throw new Error("The store is failing over");
  }

  #open({ hosts, fenceFloor }: Moment): MemoryStore {
    const store: MemoryStore = new MemoryStore({
      clock: this.#clock,
      isShared: true,
      hosts,
      fenceFloor,
      graceMs: BEAT_TTL_MS,
      onCommit: (kept) => {
        this.#past.push({ hosts: [...store.images()], fenceFloor: store.fenceFloor });
        if (this.#past.length > LONGEST_LOSS + 1) this.#past.shift();
        this.#onCommit(kept);
      },
    });
    return store;
  }
}
