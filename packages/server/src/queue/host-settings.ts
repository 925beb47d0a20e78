import {
  type FairQueueConfig,
  LIMITS,
  LIVE_LIMITS,
  type LiveLimitKey,
  SEMAPHORE_PREFIX,
  type ServiceState,
} from "@slotkeeper/protocol";
import {
  type HostPolicy,
  type HostSnapshot,
  overrideOf,
  type QueueOptions,
  resolveHost,
  resolveOptions,
} from "@slotkeeper/queue";
import { PATH_SEPARATOR } from "../config/layers.ts";
import { type HostDirectory, plainName } from "./names.ts";

/** The part of a configuration that is about hosts, and where its values come from. */
export interface HostConfiguration {
  readonly settings: { readonly fairQueue: FairQueueConfig };
  readonly origins: ReadonlyMap<string, string>;
}

type HostLimits = ServiceState["hosts"][number]["limits"];

/** A live "no limit" as a number, because stores keep limits as numbers and JSON has no infinity. */
export const NO_LIMIT = LIMITS.slots;

/** The limits of a host and their origins, for one configuration. */
export class HostSettings implements HostDirectory {
  readonly #options: QueueOptions;
  readonly #origins: ReadonlyMap<string, string>;
  readonly names: HostDirectory["names"];
  readonly keyOf: HostDirectory["keyOf"];

  constructor({ settings, origins }: HostConfiguration, keyOf: HostDirectory["keyOf"]) {
    this.#options = resolveOptions(settings.fairQueue);
    this.#origins = origins;
    this.keyOf = keyOf;
    // Semaphores are left out, because they are used only by name.
    const names = Object.keys(settings.fairQueue.hosts ?? {})
      .map(plainName)
      .filter((name) => !name.includes("*") && !name.startsWith(SEMAPHORE_PREFIX));
    this.names = new Map(names.map((name) => [keyOf(name), name]));
  }

  /** Whether the configuration has limits for this name or for a pattern that matches it. */
  isConfigured(hostname: string): boolean {
    return overrideOf(this.#options.hosts, hostname) !== undefined;
  }

  policyOf(hostname: string | undefined): HostPolicy {
    return resolveHost(this.#options, hostname).policy;
  }

  limitsOf(hostname: string | undefined, stored: HostSnapshot | undefined): HostLimits {
    const { live, slots } = stored ?? {};
    const inForce = { ...this.policyOf(hostname), ...live, ...(slots === undefined ? {} : { slots }) };
    const isSemaphore = hostname?.startsWith(SEMAPHORE_PREFIX) === true;
    const shownLimits = LIVE_LIMITS.map(({ key, field }) => {
      const configured = live?.[field] === undefined ? this.#originOf(key, hostname) : "live";
      return [key, { value: shown(inForce[field]), origin: isSemaphore ? "semaphore" : configured }];
    });
    return Object.fromEntries(shownLimits) as HostLimits;
  }

  #originOf(key: LiveLimitKey, hostname: string | undefined): string {
    const override = hostname === undefined ? undefined : overrideOf(this.#options.hosts, hostname);
    const isOwn = override?.config[key] !== undefined;
    const path = isOwn ? ["fairQueue", "hosts", override.pattern, key] : ["fairQueue", key];
    return this.#origins.get(path.join(PATH_SEPARATOR)) ?? "default";
  }
}

function shown(limit: number): number {
  return limit >= NO_LIMIT ? 0 : limit;
}
