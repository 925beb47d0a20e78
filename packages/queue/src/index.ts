/** `@slotkeeper/queue`: the fair queue as a pure engine. No I/O, no clock of its own: everything is given. */
export type { BeginRequest } from "./engine/begin-request.ts";
export type { HostDump, QueueDump } from "./engine/dump.ts";
export type { QueueCounts, QueueEvent } from "./engine/events.ts";
export { FairQueue, type FairQueueInit } from "./engine/fair-queue.ts";
export type { CallSignal } from "./engine/poll.ts";
export type { ReleaseInput } from "./engine/releases.ts";
export { type HostPolicy, type ResolvedHost, resolveHost } from "./host-policy.ts";
export { type BreakerPolicy, type QueueOptions, resolveOptions } from "./options.ts";
export { BucketOrder, type Ranked } from "./order/bucket-order.ts";
export type { AccountView, Rank } from "./order/contract.ts";
export { ranksBefore, usedPerWeight } from "./order/order.ts";
export type { StoreFact } from "./store/facts.ts";
export { MemoryStore, type MemoryStoreOptions } from "./store/memory-store.ts";
export type {
  BatchReply,
  BreakerView,
  CleanupReply,
  CleanupRequest,
  FreedEvent,
  GrantedSlot,
  HostSnapshot,
  LeaseSnapshot,
  LiveLimits,
  OperatorAction,
  ReleaseReply,
  ReleaseRequest,
  RenewReply,
  SessionEnd,
  SlotStore,
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
