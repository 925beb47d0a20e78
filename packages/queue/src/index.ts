/** `@slotkeeper/queue`: the fair queue as a pure engine. It has no I/O and no clock of its own: the caller passes them in. */
export { type BreakerView, phaseFor } from "./book/breaker.ts";
export type { BudgetView } from "./book/budget-view.ts";
export type { ClassView } from "./book/class-view.ts";
export { decodeBook, decodeChanges, encodeFields, type RecordRow, recordOfRow } from "./book/codec.ts";
export { newHead } from "./book/head.ts";
export { hostOfToken } from "./book/leases.ts";
export type * from "./book/records.ts";
export { DemandMismatchError, ImpossibleRequestError } from "./engine/answers.ts";
export type { BeginRequest } from "./engine/calls.ts";
export type { FairQueueInit } from "./engine/context.ts";
export type { HostDump, HostGlance, HostInspection, QueueDump, QueueOverview, SessionTotals } from "./engine/dump.ts";
export type { CallSignal } from "./engine/entry.ts";
export type { QueueCounts, QueueEvent } from "./engine/events.ts";
export { FairQueue, type HostQuotas } from "./engine/fair-queue.ts";
export type { ReleaseAccepted, ReleaseInput, RenewReply } from "./engine/releases.ts";
export {
  type BreakerPolicy,
  constraintsOf,
  type HostPolicy,
  isConstrained,
  overrideOf,
  type ResolvedHost,
  resolveHost,
} from "./host-policy.ts";
export type { Operation } from "./inputs.ts";
export { type QueueOptions, resolveOptions } from "./options.ts";
export { type BucketSnapshot, type HostSnapshot, type LeaseSnapshot, snapshotOf } from "./store/host-snapshot.ts";
export type * from "./store/host-store.ts";
export { type KeptCommit, type KeptHost, MemoryStore, type MemoryStoreOptions } from "./store/memory-store.ts";
