/** `@slotkeeper/protocol`: the words of the service. Types and constants; the schemas are at `./schemas`. `*`: every export is public. */
export type * from "./config.ts";
export * from "./demand.ts";
export { LIMITS, SEMAPHORE_PREFIX, SHARED_BUCKET } from "./limits.ts";
export * from "./problems.ts";
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
export * from "./settings/class-settings.ts";
export * from "./settings/host-limits.ts";
export * from "./settings/key-settings.ts";
export * from "./settings/queue-settings.ts";
export { defaultsOf, type NumberSetting, type Setting, type Settings } from "./settings/setting.ts";
export { isRecord, isWithin, NAME, NAME_PROBLEM, numberExpected } from "./settings/setting-checks.ts";
export * from "./wait-cause.ts";
export type * from "./wire.ts";
