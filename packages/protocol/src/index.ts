/** `@slotkeeper/protocol`: the words of the service. Types and constants; the schemas are at `./schemas`. */
export type {
  BreakerConfig,
  CleanupConfig,
  FairQueueConfig,
  HostConfig,
  HostLimitsConfig,
  OrderName,
  ServiceConfig,
  WeightedSchedulerConfig,
} from "./config.ts";
export {
  amountOf,
  type Costs,
  classOf,
  type Demand,
  type DemandDifference,
  demandOf,
  differenceOf,
  type KeyValues,
  widthOf,
} from "./demand.ts";
export { LIMITS, SEMAPHORE_PREFIX, SHARED_BUCKET } from "./limits.ts";
export { PROBLEMS, type ProblemCode } from "./problems.ts";
export {
  type BeginAnswer,
  type BlockedBy,
  blockedByWords,
  type CancelResult,
  type GrantedAnswer,
  type OverloadedAnswer,
  type PendingAnswer,
  type PollAnswer,
  type SessionClaims,
  type ThrottledAnswer,
  type TimeoutAnswer,
} from "./session.ts";
export {
  type BudgetPolicies,
  type BudgetPolicy,
  budgetOfOrder,
  budgetProblems,
  hasEnforced,
  orderProblems,
  resolveBudgets,
  SLOTS_QUOTA,
} from "./settings/budget-settings.ts";
export {
  CLASS_SETTINGS,
  type ClassPolicies,
  type ClassPolicy,
  classProblems,
  DEFAULT_CLASS,
  floorProblems,
  resolveClasses,
  sumOfFloors,
  WEIGHT,
} from "./settings/class-settings.ts";
export {
  BREAKER_LIMITS,
  HOST_LIMITS,
  LIVE_LIMITS,
  type LiveLimitField,
  type LiveLimitKey,
  type Resolved,
  resolveLimits,
} from "./settings/host-limits.ts";
export {
  BUCKET_KEY,
  enforcedSlotsOf,
  holdsBack,
  isEnforced,
  KEY_SETTINGS,
  type KeyLimits,
  type KeyPolicy,
  keyLimitsOf,
  keyProblems,
  resolveKeys,
} from "./settings/key-settings.ts";
export { CLEANUP_SETTINGS, QUEUE_SETTINGS, SCHEDULER_SETTINGS } from "./settings/queue-settings.ts";
export { defaultsOf, type NumberSetting, type Setting, type Settings } from "./settings/setting.ts";
export { isRecord, isWithin, NAME, numberExpected } from "./settings/setting-checks.ts";
export {
  type BudgetState,
  breakerCause,
  type ClassState,
  refillWords,
  type ShownTexts,
  unitsOf,
  type WaitCause,
  waitCause,
} from "./wait-cause.ts";
export type {
  AcquireReply,
  CancelCall,
  CancelReply,
  FirstCall,
  LiveState,
  PollCall,
  Problem,
  ReleaseCall,
  ReleaseReply,
  RenewCall,
  RenewReply,
  ReportCall,
  ServiceHistory,
  ServiceInstances,
  ServiceState,
} from "./wire.ts";
