/** `@slotkeeper/server/internals`: for the tests, benchmarks and scripts of this repository. It may change in any version. */
export { FINDING_CODES } from "./doctor/finding.ts";
export { Refusals } from "./http/held-calls.ts";
export { HolderTraces } from "./http/holder-traces.ts";
export { endOfTurn, nextTurn } from "./platform/clock.ts";
export { HostSettings } from "./queue/host-settings.ts";
export { StoreUnwritableError } from "./store/journal/errors.ts";
export {
  encodeFirstLine,
  encodeFrame,
  type Frame,
  FrameDamage,
  type Frames,
  readFrames,
} from "./store/journal/frame.ts";
export type { JournalEvent, JournalHealth } from "./store/journal/journal.ts";
export type { AppendFile, JournalDisk, PreparedFile } from "./store/journal/node-disk.ts";
export {
  type JournaledMemoryStore,
  type JournaledStoreOptions,
  openJournaledMemoryStore,
} from "./store/journal/open-journal.ts";
export { thisProcess } from "./store/journal/process-identity.ts";
export { ProcessLock, type ProcessLockOptions } from "./store/journal/process-lock.ts";
export { Activity } from "./telemetry/activity.ts";
export { BusiestHosts } from "./telemetry/busiest-hosts.ts";
export { HistoryRing, STEP_MS, STEPS, WAIT_BOUNDS_MS } from "./telemetry/history-ring.ts";
export { LiveHub } from "./telemetry/live-hub.ts";
export type { Metric } from "./telemetry/metric.ts";
export { METRICS } from "./telemetry/metrics.ts";
export { type ScrapeSources, scrape } from "./telemetry/scrape.ts";
export { StoreReader } from "./telemetry/store-reader.ts";
export { EventLog, type EventLogInit, Telemetry } from "./telemetry/telemetry.ts";
export { type FieldProblem, type Validator, validator } from "./words/validator.ts";
