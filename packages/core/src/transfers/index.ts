/**
 * `slotkeeper/transfers`: slots for uploads and downloads, with limits that are calculated from the available memory.
 */
export { type DetectedMemory, detectMemory, type MemorySource } from "./detect-memory.ts";
export type { Environment } from "./environment.ts";
export type { GovernorOptions, GovernorState, Pressure } from "./governor.ts";
export {
  type MediaConfig,
  type MediaSettings,
  mediaConfigFromEnv,
  type SettingSource,
  type SettingTraces,
  type WarningLogger,
} from "./media-config.ts";
export { type LimitSource, type MediaLimits, memoryLimits, type SlotLimits } from "./media-limits.ts";
export {
  type GovernorEvent,
  type LimitsRecord,
  type MediaEvent,
  MediaSlots,
  type MediaSlotsConfig,
  type MediaState,
  type RecordLogger,
} from "./media-slots.ts";
export type { TierUse } from "./media-tier.ts";
export type { MemoryProbe } from "./memory-probe.ts";
export type { TransferOptions, TransferPoolOptions } from "./transfer-pool.ts";
export { TransferSlots, type TransferSlotsOptions, type TransferStats } from "./transfer-slots.ts";
