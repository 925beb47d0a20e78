import type { FairQueue } from "@slotkeeper/queue";
import type { LoadedConfig } from "../config/load-config.ts";
import type { ServiceLimits } from "../config/settings.ts";
import type { Logger } from "../log/logger.ts";
import type { HostSettings } from "../queue/host-settings.ts";
import type { QueryTokens } from "../queue/names.ts";
import type { Flushed } from "../queue/sweeper.ts";
import type { Activity } from "../telemetry/activity.ts";
import type { LiveHub } from "../telemetry/live-hub.ts";
import type { Presence } from "../telemetry/presence.ts";
import type { ScrapeSources } from "../telemetry/scrape.ts";
import type { StoreReader } from "../telemetry/store-reader.ts";
import type { Access } from "./access.ts";
import type { DashboardFiles } from "./dashboard.ts";
import type { DispatchContext } from "./dispatch.ts";
import type { HeldCalls, Refusals } from "./held-calls.ts";
import type { HolderTraces } from "./holder-traces.ts";

/** What the routes of callers use. */
export interface CallerContext {
  readonly queue: FairQueue;
  readonly held: HeldCalls;
  readonly refusals: Refusals;
  readonly log: Pick<Logger, "warn">;
  readonly live: {
    readonly tokens: QueryTokens;
    readonly hosts: HostSettings;
    readonly limits: Pick<ServiceLimits, "hosts">;
  };
  readonly telemetry: { readonly hub: Pick<LiveHub, "stir"> };
  /** Default: traces of callers are ignored. */
  readonly traces?: HolderTraces;
  newSessionId(): string;
}

/** What the routes of operators use: the state of hosts, and actions on them. */
export interface OperatorContext {
  readonly queue: FairQueue;
  readonly log: Pick<Logger, "warn" | "audit">;
  readonly live: { readonly hosts: HostSettings; readonly config: { readonly version: string } };
  /** The name of the instance in the fleet; new with every start. */
  readonly instance: string;
  readonly version: string;
  readonly telemetry: { readonly hub: LiveHub; readonly reader: StoreReader; readonly activity: Activity };
  readonly presence: Pick<Presence, "read" | "sums">;
  now(): number;
}

/** What the routes of the control plane use. */
export interface InternalContext extends Pick<OperatorContext, "log" | "instance" | "version" | "telemetry"> {
  readonly live: { readonly config: Pick<LoadedConfig, "settings" | "version"> };
  /** `controller.instanceId`, otherwise the name above. It is sent in headers and to the control plane. */
  readonly reportedInstance: string;
  refresh(): Promise<void>;
  flush(): Promise<Flushed>;
}

/** A configuration with what is made from it. A refresh replaces all of it at once. */
export interface Live {
  readonly config: LoadedConfig;
  readonly limits: ServiceLimits;
  readonly access: Access;
  readonly tokens: QueryTokens;
  readonly hosts: HostSettings;
}

/** The parts of the service that its routes use. `live` is what a refresh replaces as a whole: a request sees one configuration. */
export type ServiceContext = CallerContext &
  OperatorContext &
  InternalContext &
  DispatchContext &
  ScrapeSources & { readonly log: Logger; readonly live: Live; readonly dashboard: DashboardFiles };
