import type { FreedEvent, MemoryStore, SlotStore } from "@slotkeeper/queue";
import type { Journal } from "./journal.ts";

/**
 * A memory store whose every answer is kept before it is given.
 *
 * D1 an answer leaves only when all that had happened in the store by the time it was decided is on the disk: its own
 * changes, and those of others it was decided by (J1). So whatever a caller was told is still so after a crash; and
 * since the file holds a prefix of what happened (J2), the state found there is one the store was in. D2 while the
 * journal cannot be written nothing is decided. D3 a call that fails may have happened, and repeating it is safe (S8).
 * Hints of freed slots are not held back: the try that follows one waits for all before it.
 */
export class JournaledStore implements SlotStore {
  readonly heartbeatMs: number | undefined;
  readonly #store: MemoryStore;
  readonly #journal: Journal;

  constructor(store: MemoryStore, journal: Journal) {
    this.heartbeatMs = store.heartbeatMs;
    this.#store = store;
    this.#journal = journal;
  }

  checkThrottle(...query: Parameters<SlotStore["checkThrottle"]>): ReturnType<SlotStore["checkThrottle"]> {
    return this.#answer(() => this.#store.checkThrottle(...query));
  }

  register(...batch: Parameters<SlotStore["register"]>): ReturnType<SlotStore["register"]> {
    return this.#answer(() => this.#store.register(...batch));
  }

  withdraw(...batch: Parameters<SlotStore["withdraw"]>): ReturnType<SlotStore["withdraw"]> {
    return this.#answer(() => this.#store.withdraw(...batch));
  }

  tryAcquire(...batch: Parameters<SlotStore["tryAcquire"]>): ReturnType<SlotStore["tryAcquire"]> {
    return this.#answer(() => this.#store.tryAcquire(...batch));
  }

  release(...request: Parameters<SlotStore["release"]>): ReturnType<SlotStore["release"]> {
    return this.#answer(() => this.#store.release(...request));
  }

  renew(...request: Parameters<SlotStore["renew"]>): ReturnType<SlotStore["renew"]> {
    return this.#answer(() => this.#store.renew(...request));
  }

  report(...report: Parameters<SlotStore["report"]>): ReturnType<SlotStore["report"]> {
    return this.#answer(() => this.#store.report(...report));
  }

  cleanup(...request: Parameters<SlotStore["cleanup"]>): ReturnType<SlotStore["cleanup"]> {
    return this.#answer(() => this.#store.cleanup(...request));
  }

  operate(...action: Parameters<SlotStore["operate"]>): ReturnType<SlotStore["operate"]> {
    return this.#answer(() => this.#store.operate(...action));
  }

  /** For the person on call, above all while nothing can be written. */
  snapshot(...query: Parameters<SlotStore["snapshot"]>): ReturnType<SlotStore["snapshot"]> {
    return this.#store.snapshot(...query);
  }

  hostKeys(): ReturnType<MemoryStore["hostKeys"]> {
    return this.#store.hostKeys();
  }

  totals(): ReturnType<MemoryStore["totals"]> {
    return this.#store.totals();
  }

  announce(...notice: Parameters<MemoryStore["announce"]>): ReturnType<MemoryStore["announce"]> {
    return this.#store.announce(...notice);
  }

  instances(): ReturnType<MemoryStore["instances"]> {
    return this.#store.instances();
  }

  onFreed(listener: (freed: FreedEvent) => void): () => void {
    return this.#store.onFreed(listener);
  }

  /** A memory store decides before its call returns: what is appended by then is all the answer rests on. */
  async #answer<T>(decide: () => Promise<T>): Promise<T> {
    this.#journal.admit();
    const decided = decide();
    const kept = this.#journal.kept();
    if (kept === undefined) return decided;
    const [answer] = await Promise.all([decided, kept]);
    return answer;
  }
}
