/** `@slotkeeper/protocol`: the words of the service. Types and constants only; the schemas join them later. */
export type {
  BreakerConfig,
  CleanupConfig,
  FairQueueConfig,
  HostConfig,
  HostLimitsConfig,
  OrderName,
  WeightedSchedulerConfig,
} from "./config.ts";
export { LIMITS, SEMAPHORE_PREFIX, SHARED_BUCKET } from "./limits.ts";
export type {
  BeginAnswer,
  BlockedBy,
  CancelResult,
  GrantedAnswer,
  OverloadedAnswer,
  PendingAnswer,
  PollAnswer,
  SessionClaims,
  ThrottledAnswer,
  TimeoutAnswer,
} from "./session.ts";
