import type { EngineContext } from "./context.ts";
import type { QueueCounts } from "./events.ts";
import type { HostQueue } from "./host-queue.ts";
import type { Hosts } from "./hosts.ts";
import type { Sessions } from "./sessions.ts";

/** The state of this instance, for the person on call and for the checks of the simulator. No token is in it. */
export interface QueueDump {
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
  readonly hosts: readonly HostDump[];
}

export interface HostDump {
  readonly host: string;
  readonly hostname: string | undefined;
  readonly pending: number;
  readonly avgWaitMs: number;
  readonly isStoreDown: boolean;
  readonly breaker: string;
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

export function dumpOf(engine: EngineContext, hosts: Hosts, sessions: Sessions, counts: QueueCounts): QueueDump {
  const now = engine.clock.now();
  const byState = { total: 0, pending: 0, granted: 0, throttled: 0, timeout: 0, canceled: 0 };
  for (const { state } of sessions.values()) {
    byState.total++;
    byState[state.kind]++;
  }
  return {
    at: now,
    sessions: byState,
    counts: { ...counts },
    unsent: engine.outbox.size,
    hosts: Array.from(hosts.values(), (host) => dumpHost(host, now)),
  };
}

function dumpHost(host: HostQueue, now: number): HostDump {
  return {
    host: host.key,
    hostname: host.hostname,
    pending: host.pending,
    avgWaitMs: host.heat.avgWaitMs,
    isStoreDown: host.isStoreDown,
    breaker: host.breaker.phase,
    buckets: Array.from(host.buckets.values(), (bucket) => ({
      bucket: bucket.name,
      pending: bucket.pending,
      places: bucket.places,
      inFlight: bucket.inFlight,
      deniedForMs: bucket.isDenied ? Math.max(0, bucket.denyUntil - now) : 0,
      waitCount: bucket.waitCount,
      virtualTime: bucket.virtualTime,
    })),
    waiting: Array.from(host.waiting, ({ claims, bucket, place, isAwake, polls }) => ({
      session: claims.id,
      bucket: bucket.name,
      place,
      isAwake,
      arrivedAt: claims.arrivedAt,
      polls: polls.length,
    })),
  };
}
