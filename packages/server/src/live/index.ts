/** `@slotkeeper/server/live`: counts, history and events of the service, for monitoring. */

export { Refusals } from "../http/refusals.ts";
export { EventLog, type EventLogInit } from "../log/log-events.ts";
export { METRICS, type Metric } from "../metrics/catalogue.ts";
export { type ScrapeContext, scrape } from "../metrics/scrape.ts";
export { Activity } from "./activity.ts";
export { BusiestHosts } from "./busiest-hosts.ts";
export { HistoryRing, STEP_MS, STEPS, WAIT_BOUNDS_MS } from "./history-ring.ts";
export { HostSettings } from "./host-settings.ts";
export { LiveHub } from "./live-hub.ts";
export { StoreReader } from "./store-reader.ts";
export { Telemetry } from "./telemetry.ts";
