/** `@slotkeeper/queue/internals`: for the tests of this repository. It may change in any version. */
export {
  accountsOf,
  budgetOfAccount,
  keyAccounts,
  keyOfAccount,
  limitOfAccount,
  MOST_VALUES,
  policyOfAccount,
  sharedKeysOf,
} from "./book/accounts.ts";
export { Book } from "./book/book.ts";
export {
  closeBreaker,
  closesAt,
  isCounted,
  isPristine,
  openBreaker,
  reportTo,
  throttleFor,
  viewBreaker,
} from "./book/breaker.ts";
export { budgetsOf } from "./book/budget-view.ts";
export { mayForget } from "./book/host-use.ts";
export { Ladder } from "./book/ladder.ts";
export { slotTokenOf } from "./book/leases.ts";
export { RECORD_KINDS } from "./book/records.ts";
export { type Decision, decide } from "./decide/decide.ts";
export type { DecideContext } from "./decide/deciding.ts";
export type { Impossible, Input, Note, Outcome } from "./inputs.ts";
export type { Rank, RankedLine } from "./order/contract.ts";
export { ranksBefore, usedPerWeight } from "./order/order.ts";
export { SlotSeconds } from "./order/slot-seconds.ts";
export { CLOCK_SLACK_MS, RESERVED_MS, RESERVES_AFTER, TAIL_LENGTH } from "./store/host-store.ts";
