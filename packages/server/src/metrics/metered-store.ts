import type { FreedEvent, SlotStore } from "@slotkeeper/queue";
import type { Instruments, StoreOperation } from "./instruments.ts";

/**
 * The store as the engine calls it, timed. The answer is the store's own promise: measuring delays nothing, and a call
 * still decides before it returns where the store does so.
 */
export class MeteredStore implements SlotStore {
  readonly heartbeatMs: number | undefined;
  readonly #store: SlotStore;
  readonly #instruments: Instruments;

  constructor(store: SlotStore, instruments: Instruments) {
    this.heartbeatMs = store.heartbeatMs;
    this.#store = store;
    this.#instruments = instruments;
  }

  checkThrottle: SlotStore["checkThrottle"] = (query) =>
    this.#timed("checkThrottle", () => this.#store.checkThrottle(query));

  register: SlotStore["register"] = (batch) => {
    this.#instruments.batch.observe(batch.waiters.length);
    return this.#timed("register", () => this.#store.register(batch));
  };

  tryAcquire: SlotStore["tryAcquire"] = (batch) => {
    this.#instruments.batch.observe(batch.waiters.length);
    return this.#timed("tryAcquire", () => this.#store.tryAcquire(batch));
  };

  withdraw: SlotStore["withdraw"] = (batch) => this.#timed("withdraw", () => this.#store.withdraw(batch));
  release: SlotStore["release"] = (request) => this.#timed("release", () => this.#store.release(request));
  renew: SlotStore["renew"] = (request) => this.#timed("renew", () => this.#store.renew(request));
  report: SlotStore["report"] = (report) => this.#timed("report", () => this.#store.report(report));
  cleanup: SlotStore["cleanup"] = (request) => this.#timed("cleanup", () => this.#store.cleanup(request));
  operate: SlotStore["operate"] = (action) => this.#timed("operate", () => this.#store.operate(action));
  snapshot: SlotStore["snapshot"] = (query) => this.#timed("snapshot", () => this.#store.snapshot(query));

  onFreed(listener: (freed: FreedEvent) => void): () => void {
    return this.#store.onFreed((freed) => {
      this.#instruments.notifications++;
      listener(freed);
    });
  }

  #timed<T>(operation: StoreOperation, call: () => Promise<T>): Promise<T> {
    const startedAt = performance.now();
    const answer = call();
    answer.then(
      () => this.#instruments.storeCall(operation, performance.now() - startedAt),
      () => this.#instruments.storeError(operation),
    );
    return answer;
  }
}
