import {
  type Head,
  type HostStore,
  type KeptCommit,
  MemoryStore,
  type MemoryStoreOptions,
  type RecordKind,
} from "@slotkeeper/queue";
import type { Journal } from "./journal.ts";

/**
 * A memory store whose answers are kept before they are given.
 *
 * JSTORE1 an answer leaves only when all that the store had accepted by then is on the disk (JOURNAL1). So what a caller was answered is
 * still true after a crash; and since the file holds a prefix of what happened (JOURNAL2), the state found there is one the store
 * was in. JSTORE2 while the journal cannot be written nothing is accepted. JSTORE3 a call that fails may have happened, and repeating
 * it is safe (P8). JSTORE4 one exception to JSTORE1: a commit that only says who waits and how much was used is answered at once. It
 * goes out with the next sync, at the latest `DEFER_MS` later. Losing it costs no promise: a session keeps its arrival in its
 * token.
 */
export class JournaledStore implements HostStore {
  readonly clock = "own";
  readonly #store: MemoryStore;
  readonly #journal: Journal;
  /** What the call at hand has appended. */
  #appended: Appended = "nothing";

  constructor(journal: Journal, options: Omit<MemoryStoreOptions, "isShared" | "onCommit">) {
    this.#journal = journal;
    this.#store = new MemoryStore({ ...options, onCommit: (kept) => this.#append(kept) });
  }

  get memory(): Pick<MemoryStore, "images" | "fenceFloor"> {
    return this.#store;
  }

  commit(...commit: Parameters<HostStore["commit"]>): ReturnType<HostStore["commit"]> {
    return this.#answer(() => this.#store.commit(...commit));
  }

  read(...query: Parameters<HostStore["read"]>): ReturnType<HostStore["read"]> {
    return this.#answer(() => this.#store.read(...query));
  }

  cleanup(...request: Parameters<HostStore["cleanup"]>): ReturnType<HostStore["cleanup"]> {
    return this.#answer(() => this.#store.cleanup(...request));
  }

  /** Not in the journal: an instance is new with every start. */
  beat(...beat: Parameters<HostStore["beat"]>): ReturnType<HostStore["beat"]> {
    return this.#store.beat(...beat);
  }

  watch(...watch: Parameters<HostStore["watch"]>): ReturnType<HostStore["watch"]> {
    return this.#store.watch(...watch);
  }

  /** For the person on call, above all while nothing can be written. */
  peek(...query: Parameters<HostStore["peek"]>): ReturnType<HostStore["peek"]> {
    return this.#store.peek(...query);
  }

  hostKeys(): ReturnType<HostStore["hostKeys"]> {
    return this.#store.hostKeys();
  }

  totals(): ReturnType<HostStore["totals"]> {
    return this.#store.totals();
  }

  instances(): ReturnType<HostStore["instances"]> {
    return this.#store.instances();
  }

  /** A memory store acts before its call returns: what is appended by then is all the answer rests on. */
  async #answer<T>(call: () => T | Promise<T>): Promise<T> {
    this.#journal.admit();
    const answer = call();
    if (this.#takeAppended() === "deferrable") return answer;
    const kept = this.#journal.kept();
    if (kept !== undefined) await kept;
    return answer;
  }

  #takeAppended(): Appended {
    const appended = this.#appended;
    this.#appended = "nothing";
    return appended;
  }

  #append(kept: KeptCommit): void {
    const { host, tag, changes } = kept;
    this.#journal.append({ kind: "commit", host, tag, changes });
    if (!isDeferrable(kept)) this.#appended = "urgent";
    else if (this.#appended === "nothing") this.#appended = "deferrable";
  }
}

type Appended = "nothing" | "deferrable" | "urgent";

const DEFERRABLE: ReadonlySet<RecordKind> = new Set(["waiter", "account", "absence"]);

/** JSTORE4. */
function isDeferrable({ before, changes: { head, puts, dels } }: KeptCommit): boolean {
  if (before === undefined || head === undefined || puts.length + dels.length === 0) return false;
  if (!puts.every(({ kind }) => DEFERRABLE.has(kind)) || !dels.every(([kind]) => DEFERRABLE.has(kind))) return false;
  return PROMISED.every((field) => before[field] === head[field]);
}

/** The part of a head that answers depend on: the limits in force, fences, spacing, the breaker. */
const PROMISED = [
  "hostname",
  "slots",
  "fence",
  "capacity",
  "lastEndAt",
  "breaker",
] as const satisfies readonly (keyof Head)[];
