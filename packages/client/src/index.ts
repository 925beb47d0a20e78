/** `@slotkeeper/client`: slots of a Slotkeeper service, over `fetch`. */
export { type BucketOptions, bucketOfIp } from "./bucket-of-ip.ts";
export {
  AcquireTimeoutError,
  OverloadedError,
  RefusedError,
  SlotClientError,
  SlotLostError,
  ThrottledError,
  UnavailableError,
} from "./errors.ts";
export type {
  AcquireOptions,
  OnFailure,
  Pending,
  ReleaseOptions,
  SemaphoreAcquireOptions,
  SlotClientOptions,
  WaitUntil,
} from "./options.ts";
export type { Work } from "./run-with-slot.ts";
export type { ServiceSemaphore } from "./service-semaphore.ts";
export type { ServiceSlot } from "./slot.ts";
export { type ClientStats, SlotClient } from "./slot-client.ts";
export type { SlotSpan, Telemetry } from "./telemetry.ts";
