/**
 * `@slotkeeper/server/portable`: the routes of callers and operators for runtimes other than Node. Nothing here imports
 * `node:` or a database. The runtime implements `Exchange` and `Digests`, and makes the contexts.
 */
export { ConfigError } from "./config/errors.ts";
export { checkFairQueue } from "./config/fair-queue-config.ts";
export { Access, type AccessSettings } from "./http/access.ts";
export type { CallerContext, OperatorContext } from "./http/context.ts";
export {
  answering,
  type DispatchContext,
  type Handler,
  RequestLog,
  Router,
  type RouteTable,
} from "./http/dispatch.ts";
export {
  BaseExchange,
  type Body,
  type Exchange,
  type Headers,
  type JsonObject,
  type Leaving,
  NO_SNIFF,
  type ProblemMore,
  parseBody,
} from "./http/exchange.ts";
export { HeldCalls, Refusals } from "./http/held-calls.ts";
export { hostInPath, segmentOf, slotNamed } from "./http/path-host.ts";
export { CALLER_ROUTES, OPERATOR_ROUTES } from "./http/routes.ts";
export type { LogFields, Logger, LogLevel } from "./log/logger.ts";
export type { Digests } from "./platform/digests.ts";
export { type HostConfiguration, HostSettings } from "./queue/host-settings.ts";
export { hostKeys, namedHost, QueryTokens, unverifiedHost, type Verified } from "./queue/names.ts";
export {
  decodeEntries,
  encodeEntry,
  isDeferrable,
  type JournalEntry,
  Restored,
  snapshotOf,
} from "./store/journal/entry.ts";
export { aheadOf, ResumedClock } from "./store/journal/resumed-clock.ts";
export { Activity } from "./telemetry/activity.ts";
export { liveFrame } from "./telemetry/live-frame.ts";
export { type EventStream, LiveHub, type LiveHubInit } from "./telemetry/live-hub.ts";
export { Presence, type PresenceInit } from "./telemetry/presence.ts";
export { type ReadableStore, StoreReader } from "./telemetry/store-reader.ts";
