import type { BlockedBy } from "@slotkeeper/protocol";
import { blockedBy, estimatedWait } from "./answers.ts";
import type { EngineContext } from "./context.ts";
import type { QueueCounts } from "./events.ts";
import type { Host } from "./host.ts";
import type { Hosts } from "./hosts.ts";
import type { Session } from "./session.ts";
import type { Sessions } from "./sessions.ts";

/** A summary of this instance. */
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
  /** Inputs that the store does not have yet. */
  readonly unsent: number;
  /** When the session that has waited longest arrived, over all hosts. Undefined: no session waits. */
  readonly oldestArrivedAt: number | undefined;
  /** How far the store's clock is ahead of this instance's. */
  readonly clockSkewMs: number;
}

/** The state of this instance, for operators and for the checks of the simulator. It contains no tokens. */
export interface QueueDump extends QueueOverview {
  readonly hosts: readonly HostDump[];
}

/** A host as a row of a table. */
export interface HostGlance {
  readonly host: string;
  readonly hostname: string | undefined;
  /** Sessions that wait at this instance. */
  readonly pending: number;
  readonly avgWaitMs: number;
  readonly isHot: boolean;
  /** When the session that has waited longest arrived. Undefined: no session waits. */
  readonly oldestArrivedAt: number | undefined;
  readonly isStoreDown: boolean;
  readonly breaker: string;
}

/** A host with its buckets and the sessions that wait at this instance. */
export interface HostDump extends HostGlance {
  readonly buckets: readonly BucketDump[];
  readonly waiting: readonly WaitingDump[];
}

interface BucketDump {
  readonly bucket: string;
  /** Waiters of the whole fleet, inside and outside the pool. */
  readonly pending: number;
  readonly places: number;
  readonly inFlight: number;
  /** Why the bucket itself may not get a slot now. */
  readonly obstacle: "ip-limit" | "cooldown" | undefined;
  readonly waitCount: number;
  readonly virtualTime: number;
}

interface WaitingDump {
  readonly session: string;
  readonly bucket: string;
  /** `joining`: not in the book yet; `inside` or `outside` the waiter pool; `offered` a slot. */
  readonly place: string;
  readonly isAwake: boolean;
  readonly arrivedAt: number;
  readonly polls: number;
}

/** A host in full detail. */
export interface HostInspection extends HostDump {
  readonly waiting: readonly (WaitingDump & {
    /** 1 is next. */
    readonly position: number;
    readonly blockedBy: BlockedBy | undefined;
    readonly estimatedWaitMs: number | undefined;
  })[];
}

interface Parts {
  readonly context: EngineContext;
  readonly hosts: Hosts;
  readonly sessions: Sessions;
  readonly counts: QueueCounts;
}

/** Cost: O(sessions of this instance). */
export function overviewOf({
  context: engine,
  sessions,
  counts,
}: Pick<Parts, "context" | "sessions" | "counts">): QueueOverview {
  const byState = { total: 0, pending: 0, granted: 0, throttled: 0, timeout: 0, canceled: 0 };
  let oldest = Number.POSITIVE_INFINITY;
  for (const { state, claims } of sessions.register.values()) {
    byState.total++;
    // A session that has moved is not in the register.
    if (state.kind !== "moved") byState[state.kind]++;
    if (state.kind === "pending" && claims.arrivedAt < oldest) oldest = claims.arrivedAt;
  }
  return {
    at: engine.time.now(),
    sessions: byState,
    counts: { ...counts },
    unsent: engine.unsent.count,
    oldestArrivedAt: byState.pending === 0 ? undefined : oldest,
    clockSkewMs: engine.time.skewMs,
  };
}

export function dumpOf(parts: Parts): QueueDump {
  const { context, hosts } = parts;
  return { ...overviewOf(parts), hosts: Array.from(hosts.values(), (host) => dumpHost(host, context)) };
}

/** Calculates the position of every waiter, in arrival order. Cost: O(n log n) in the waiters of the host. */
export function inspect(host: Host, engine: EngineContext): HostInspection {
  const now = engine.time.now();
  const sessions = [...host.waiting].sort((a, b) => a.claims.arrivedAt - b.claims.arrivedAt);
  return {
    ...dumpHost(host, engine),
    waiting: sessions.map((session) => {
      const position = host.book.limits === undefined ? 1 : host.positionOf(session.claims.id, now);
      const estimatedWaitMs = estimatedWait(host, position);
      return { ...dumpWaiting(session), position, blockedBy: blockedBy(session, now), estimatedWaitMs };
    }),
  };
}

export function glance(host: Host, { time }: EngineContext): HostGlance {
  const { book } = host;
  return {
    host: host.key,
    hostname: host.hostname,
    pending: host.pending,
    avgWaitMs: book.head.avgWaitMs,
    isHot: book.limits !== undefined && book.index.order.isHot(book),
    oldestArrivedAt: oldestArrivedAt(host),
    isStoreDown: host.isStoreDown,
    breaker: host.breaker(time.now()).phase,
  };
}

function dumpHost(host: Host, engine: EngineContext): HostDump {
  return {
    ...glance(host, engine),
    buckets: Array.from(
      host.book.index.buckets,
      ({ name, places, outsiders, parked, inFlight, obstacle, weighted }) => ({
        bucket: name,
        pending: places + outsiders + parked,
        places,
        inFlight,
        obstacle,
        waitCount: weighted?.waitCount ?? 0,
        virtualTime: weighted?.virtualTime ?? 0,
      }),
    ),
    waiting: Array.from(host.waiting, dumpWaiting),
  };
}

function dumpWaiting({ host, claims, isAway, isOffered, polls }: Session): WaitingDump {
  const waiter = host.book.get("waiter", claims.id);
  const place = waiter === undefined ? "joining" : waiter.isInside ? "inside" : "outside";
  return {
    session: claims.id,
    bucket: claims.bucket,
    place: isOffered ? "offered" : place,
    isAwake: !isAway,
    arrivedAt: claims.arrivedAt,
    polls: polls.length,
  };
}

function oldestArrivedAt({ waiting }: Host): number | undefined {
  let oldest: number | undefined;
  for (const { claims } of waiting) if (oldest === undefined || claims.arrivedAt < oldest) oldest = claims.arrivedAt;
  return oldest;
}
