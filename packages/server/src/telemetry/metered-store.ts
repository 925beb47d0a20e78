import type { CommitNotice, CommitReply, HostStore } from "@slotkeeper/queue";
import type { Instruments } from "./instruments.ts";
import type { StoreOperation } from "./metrics.ts";

/** The store with timing. It returns the answers of the store, and measuring delays nothing. */
export class MeteredStore implements HostStore {
  readonly isShared: boolean;
  readonly #store: HostStore;
  readonly #instruments: Instruments;

  constructor(store: HostStore, instruments: Instruments) {
    this.isShared = store.isShared;
    this.#store = store;
    this.#instruments = instruments;
  }

  commit: HostStore["commit"] = (commit) => {
    const { puts, dels } = commit.changes;
    this.#instruments.record("changed", puts.length + dels.length);
    const answer = this.#timed("commit", () => this.#store.commit(commit));
    if (answer instanceof Promise) answer.then(this.#countRefusal, () => {});
    else this.#countRefusal(answer);
    return answer;
  };

  read: HostStore["read"] = (host, since) => this.#timed("read", () => this.#store.read(host, since));
  beat: HostStore["beat"] = (beat) => this.#timed("beat", () => this.#store.beat(beat));
  peek: HostStore["peek"] = (hosts) => this.#timed("peek", () => this.#store.peek(hosts));
  hostKeys: HostStore["hostKeys"] = () => this.#timed("hostKeys", () => this.#store.hostKeys());
  totals: HostStore["totals"] = () => this.#timed("totals", () => this.#store.totals());
  instances: HostStore["instances"] = () => this.#timed("instances", () => this.#store.instances());
  cleanup: HostStore["cleanup"] = (request) => this.#timed("cleanup", () => this.#store.cleanup(request));

  watch(instance: string, listener: (notice: CommitNotice) => void): () => void {
    return this.#store.watch(instance, (notice) => {
      this.#instruments.count("notifications");
      listener(notice);
    });
  }

  readonly #countRefusal = (reply: CommitReply): void => {
    if (!reply.isOk) this.#instruments.count("commitRefusals", reply.reason);
  };

  #timed<A>(operation: StoreOperation, call: () => A): A {
    const startedAt = performance.now();
    const answered = () => this.#instruments.record("store", (performance.now() - startedAt) / 1000, operation);
    const answer = call();
    if (answer instanceof Promise) answer.then(answered, () => this.#instruments.count("storeErrors", operation));
    else answered();
    return answer;
  }
}
