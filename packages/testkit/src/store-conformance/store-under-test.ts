import type { BookRecord, HostStore } from "@slotkeeper/queue";

/** What an implementation provides for the suite. */
export interface StoreUnderTest {
  readonly store: HostStore;
  /** The store of another instance with the same state; the same object if there is only one. */
  readonly other: HostStore;
  /** Moves the clock of the store, also backwards. */
  pass(ms: number): Promise<void>;
  /** Ends the process and starts it again. Absent if the store keeps nothing. */
  restart?(): Promise<HostStore>;
  /** What a restart changes on purpose in a record. Absent if it changes nothing. */
  readonly afterRestart?: (record: BookRecord) => BookRecord;
  close(): Promise<void>;
}

export interface ConformanceOptions {
  readonly open: () => Promise<StoreUnderTest>;
  /** The parts that the implementation does not support, each with the reason. */
  readonly skip?: { readonly push?: string; readonly restart?: string };
}
