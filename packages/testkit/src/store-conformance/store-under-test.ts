import type { BookRecord, HostStore } from "@slotkeeper/queue";

/** What an implementation brings to be tested. */
export interface StoreUnderTest {
  readonly store: HostStore;
  /** Another instance's way to the same state; the same object where there is only one. */
  readonly other: HostStore;
  /** Moves the store's clock, also back. */
  pass(ms: number): Promise<void>;
  /** Ends the process and starts it again. Absent: nothing is kept. */
  restart?(): Promise<HostStore>;
  /** What a restart changes on purpose in a record. Absent: nothing. */
  readonly afterRestart?: (record: BookRecord) => BookRecord;
  close(): Promise<void>;
}

export interface ConformanceOptions {
  readonly open: () => Promise<StoreUnderTest>;
  /** What the implementation does not do, each with the reason. */
  readonly skip?: { readonly push?: string; readonly restart?: string };
}
