/** `slotkeeper`: slots for everything that must not run all at once, in one process. */
export { type Clock, realClock } from "./clock.ts";
export {
  AcquireTimeoutError,
  CapacityMismatchError,
  ClosedError,
  ERROR_CODES,
  type ErrorCode,
  isSlotkeeperError,
  QueueFullError,
  SlotExpiredError,
  SlotkeeperError,
} from "./errors.ts";
