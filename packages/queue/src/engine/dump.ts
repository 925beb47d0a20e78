import type { BlockedBy } from "@slotkeeper/protocol";
import { blockedBy, estimatedWait } from "./answers.ts";
import type { EngineContext } from "./context.ts";
import type { QueueCounts } from "./events.ts";
import type { HostQueue } from "./host-queue.ts";
import type { Hosts } from "./hosts.ts";
import type { Session } from "./session.ts";
import type { Sessions } from "./sessions.ts";

/** This instance in a few numbers. */
export interface QueueOverview {
  readonly at: number;
  readonly sessions: {
    total: number;
    pending: number;
    granted: number;
    throttled: number;
    timeout: number;
    canceled: number;
  };
  readonly counts: QueueCounts;
  /** Calls the store has not heard of yet. */
  readonly unsent: number;
  /** When the longest-waiting session of all arrived; undefined: nobody waits. */
  readonly oldestArrivedAt: number | undefined;
}

/** The state of this instance, for the person on call and for the checks of the simulator. No token is in it. */
export interface QueueDump extends QueueOverview {
  readonly hosts: readonly HostDump[];
}

/** A host as a row of a table. */
export interface HostGlance {
  readonly host: string;
  readonly hostname: string | undefined;
  readonly pending: number;
  readonly avgWaitMs: number;
  readonly isHot: boolean;
  /** When the longest-waiting session arrived; undefined: nobody waits. */
  readonly oldestArrivedAt: number | undefined;
  readonly isStoreDown: boolean;
  readonly breaker: string;
}

export interface HostDump extends HostGlance {
  readonly buckets: readonly BucketDump[];
  readonly waiting: readonly WaitingDump[];
}

interface BucketDump {
  readonly bucket: string;
  readonly pending: number;
  readonly places: number;
  readonly inFlight: number;
  readonly deniedForMs: number;
  readonly waitCount: number;
  readonly virtualTime: number;
}

interface WaitingDump {
  readonly session: string;
  readonly bucket: string;
  readonly place: string;
  readonly isAwake: boolean;
  readonly arrivedAt: number;
  readonly polls: number;
}

/** A host looked at closely. */
export interface HostInspection extends HostDump {
  readonly waiting: readonly (WaitingDump & {
    /** 1 is next. */
    readonly position: number;
    readonly blockedBy: BlockedBy | undefined;
    readonly estimatedWaitMs: number | undefined;
  })[];
}

/** O(sessions here); hosts cost nothing. */
export function overviewOf(engine: EngineContext, sessions: Sessions, counts: QueueCounts): QueueOverview {
  const byState = { total: 0, pending: 0, granted: 0, throttled: 0, timeout: 0, canceled: 0 };
  let oldest = Number.POSITIVE_INFINITY;
  for (const { state, claims } of sessions.values()) {
    byState.total++;
    byState[state.kind]++;
    if (state.kind === "pending" && claims.arrivedAt < oldest) oldest = claims.arrivedAt;
  }
  return {
    at: engine.clock.now(),
    sessions: byState,
    counts: { ...counts },
    unsent: engine.outbox.size,
    oldestArrivedAt: byState.pending === 0 ? undefined : oldest,
  };
}

export function dumpOf(engine: EngineContext, hosts: Hosts, sessions: Sessions, counts: QueueCounts): QueueDump {
  return {
    ...overviewOf(engine, sessions, counts),
    hosts: Array.from(hosts.values(), (host) => dumpHost(host, engine)),
  };
}

/** Works out every waiter's position, in arrival order: O(n log n) of the host's waiters. */
export function inspect(host: HostQueue, engine: EngineContext): HostInspection {
  const now = engine.clock.now();
  const { pollIntervalMs } = engine.options();
  const sessions = [...host.waiting].sort((a, b) => a.claims.arrivedAt - b.claims.arrivedAt);
  return {
    ...dumpHost(host, engine),
    waiting: sessions.map((session) => {
      const position = host.positions.of(session, now, pollIntervalMs);
      const estimatedWaitMs = estimatedWait(host, position);
      return { ...dumpWaiting(session), position, blockedBy: blockedBy(session, now), estimatedWaitMs };
    }),
  };
}

export function glance(host: HostQueue, engine: EngineContext): HostGlance {
  const { scheduler, pollIntervalMs } = engine.options();
  const settings = { scheduler, pollIntervalMs, minHoldMs: host.policy.minHoldMs };
  return {
    host: host.key,
    hostname: host.hostname,
    pending: host.pending,
    avgWaitMs: host.heat.avgWaitMs,
    isHot: host.heat.wouldBeHot(host.pending, host.policy.slots, settings),
    oldestArrivedAt: oldestArrivedAt(host),
    isStoreDown: host.isStoreDown,
    breaker: host.breaker.phase,
  };
}

function dumpHost(host: HostQueue, engine: EngineContext): HostDump {
  const now = engine.clock.now();
  return {
    ...glance(host, engine),
    buckets: Array.from(host.buckets.values(), (bucket) => ({
      bucket: bucket.name,
      pending: bucket.pending,
      places: bucket.places,
      inFlight: bucket.inFlight,
      deniedForMs: bucket.isDenied ? Math.max(0, bucket.denyUntil - now) : 0,
      waitCount: bucket.waitCount,
      virtualTime: bucket.virtualTime,
    })),
    waiting: Array.from(host.waiting, dumpWaiting),
  };
}

function dumpWaiting({ claims, bucket, place, isAwake, polls }: Session): WaitingDump {
  return {
    session: claims.id,
    bucket: bucket.name,
    place,
    isAwake,
    arrivedAt: claims.arrivedAt,
    polls: polls.length,
  };
}

function oldestArrivedAt({ waiting }: HostQueue): number | undefined {
  let oldest: number | undefined;
  for (const { claims } of waiting) if (oldest === undefined || claims.arrivedAt < oldest) oldest = claims.arrivedAt;
  return oldest;
}
