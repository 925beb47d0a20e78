/** `@slotkeeper/queue`: the fair queue as a pure engine. No I/O, no clock of its own: everything is given. */
export { decodeChanges, encode, revive } from "./book/codec.ts";
export type * from "./book/records.ts";
export type { BeginRequest } from "./engine/begin-request.ts";
export type { HostDump, HostGlance, HostInspection, QueueDump, QueueOverview } from "./engine/dump.ts";
export type { QueueCounts, QueueEvent } from "./engine/events.ts";
export { FairQueue, type FairQueueInit } from "./engine/fair-queue.ts";
export type { Operation } from "./engine/operations.ts";
export type { CallSignal } from "./engine/poll.ts";
export type { ReleaseInput } from "./engine/releases.ts";
export { type HostPolicy, overrideOf, type ResolvedHost, resolveHost } from "./host-policy.ts";
export { type BreakerPolicy, type QueueOptions, resolveOptions } from "./options.ts";
export { BucketOrder, type Ranked } from "./order/bucket-order.ts";
export type { AccountView, Rank } from "./order/contract.ts";
export { ranksBefore, usedPerWeight } from "./order/order.ts";
export { phaseFor } from "./store/breaker.ts";
export type { StoreFact } from "./store/facts.ts";
export * from "./store/host-store.ts";
export { MemoryStore, type MemoryStoreOptions } from "./store/memory-store.ts";
export type {
  BatchReply,
  BreakerView,
  FreedEvent,
  GrantedSlot,
  HostSnapshot,
  InstanceNotice,
  LeaseSnapshot,
  OperatorAction,
  ReleaseReply,
  ReleaseRequest,
  RenewReply,
  SlotStore,
  SnapshotQuery,
  StatusReport,
  StoreSnapshot,
  ThrottleQuery,
  ThrottleState,
  Verdict,
  Waiter,
  WaiterBatch,
  WithdrawBatch,
} from "./store/slot-store.ts";
export { StoreImage } from "./store/store-image.ts";
