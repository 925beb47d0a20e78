import { type HostStore, type KeptCommit, MemoryStore, type MemoryStoreOptions } from "@slotkeeper/queue";
import { isDeferrable } from "./entry.ts";
import type { Journal } from "./journal.ts";

/**
 * A memory store that answers only after its changes are on the disk.
 *
 * JSTORE1  A call is answered only when everything that the store has accepted by then is on the disk (JOURNAL1). So
 *     every answer is still true after a crash. The file has a prefix of the history (JOURNAL2), so the state in it
 *     really existed.
 * JSTORE2  While the journal cannot be written, nothing is accepted.
 * JSTORE3  A call that fails may have taken effect, and repeating it is safe (P8).
 * JSTORE4  One exception to JSTORE1: a commit that only records waiters and use (`isDeferrable`) is answered at once. It is
 *     written with the next sync, at most `DEFER_MS` later.
 */
export class JournaledStore implements HostStore {
  readonly isShared = false;
  readonly #store: MemoryStore;
  readonly #journal: Journal;
  /** What the current call has appended. */
  #appended: Appended = "nothing";

  constructor(journal: Journal, options: Omit<MemoryStoreOptions, "isShared" | "onCommit">) {
    this.#journal = journal;
    this.#store = new MemoryStore({ ...options, onCommit: (kept) => this.#append(kept) });
  }

  get memory(): Pick<MemoryStore, "images" | "fenceFloor"> {
    return this.#store;
  }

  commit: HostStore["commit"] = (commit) => this.#answer(() => this.#store.commit(commit));
  read: HostStore["read"] = (host, since) => this.#answer(() => this.#store.read(host, since));

  /** Goes through the hosts in several turns, so it awaits the end before what it appended is on the disk. */
  async cleanup(...request: Parameters<HostStore["cleanup"]>): ReturnType<HostStore["cleanup"]> {
    this.#journal.admit();
    const reply = await this.#store.cleanup(...request);
    await this.#journal.kept();
    return reply;
  }

  /** Not in the journal, because an instance is new with every start. */
  beat: HostStore["beat"] = (beat) => this.#store.beat(beat);
  watch: HostStore["watch"] = (instance, listener) => this.#store.watch(instance, listener);

  /** Also work while nothing can be written, for the person on call. */
  peek: HostStore["peek"] = (hosts) => this.#store.peek(hosts);
  hostKeys: HostStore["hostKeys"] = () => this.#store.hostKeys();
  totals: HostStore["totals"] = () => this.#store.totals();
  instances: HostStore["instances"] = () => this.#store.instances();

  /** A memory store acts before its call returns, so the answer depends only on what was appended by then. */
  async #answer<T>(call: () => T | Promise<T>): Promise<T> {
    this.#journal.admit();
    const answer = call();
    const appended = this.#appended;
    this.#appended = "nothing";
    if (appended === "deferrable") return answer;
    const kept = this.#journal.kept();
    if (kept !== undefined) await kept;
    return answer;
  }

  #append(kept: KeptCommit): void {
    const { host, tag, changes } = kept;
    this.#journal.append({ kind: "commit", host, tag, changes });
    if (!isDeferrable(kept)) this.#appended = "urgent";
    else if (this.#appended === "nothing") this.#appended = "deferrable";
  }
}

type Appended = "nothing" | "deferrable" | "urgent";
