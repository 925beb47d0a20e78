import type { FairQueue } from "@slotkeeper/queue";
import type { LoadedConfig } from "../config/load-config.ts";
import type { HostSettings } from "../live/host-settings.ts";
import type { Presence } from "../live/presence.ts";
import type { Telemetry } from "../live/telemetry.ts";
import type { Logger } from "../log/logger.ts";
import type { ReadinessCheck } from "../readiness/readiness.ts";
import type { OpenStore } from "../store/open-store.ts";
import type { QueryTokens } from "../tokens/query-tokens.ts";
import type { DashboardFiles } from "./dashboard/dashboard-files.ts";
import type { Guards } from "./guards.ts";
import type { HeldCalls } from "./held-calls.ts";
import type { Refusals } from "./refusals.ts";
import type { RequestLog } from "./request-log.ts";

/** The parts that a refresh replaces as a whole. A request sees one configuration from beginning to end. */
export interface Live {
  readonly config: LoadedConfig;
  readonly guards: Guards;
  readonly tokens: QueryTokens;
  readonly hosts: HostSettings;
}

/** The steps of a flush, and which of them failed. */
export interface Flushed {
  readonly swept: { readonly [what: string]: number };
  readonly failures: readonly { readonly step: string; readonly error: unknown }[];
}

/** The parts of the service that the routes use. */
export interface ServiceContext {
  readonly queue: FairQueue;
  readonly opened: Pick<OpenStore, "gauges">;
  readonly readiness: Pick<ReadinessCheck, "read">;
  readonly held: HeldCalls;
  readonly refusals: Refusals;
  readonly requestLog: RequestLog;
  readonly log: Logger & { readonly lost: number };
  /** The name of the instance in the fleet; new with every start. */
  readonly instance: string;
  /** `controller.instanceId`, otherwise the name above. It is sent in headers and to the control plane. */
  readonly reportedInstance: string;
  readonly version: string;
  readonly live: Live;
  readonly telemetry: Telemetry;
  readonly presence: Presence;
  /** Open connections. */
  connections(): number;
  isBoundToLoopback(): boolean;
  readonly dashboard: DashboardFiles;
  now(): number;
  isOnFallback(): boolean;
  refresh(): Promise<void>;
  flush(): Promise<Flushed>;
}
