import { type BlockedBy, type Costs, widthOf } from "@slotkeeper/protocol";
import { blockedBy, estimatedWait } from "./answers.ts";
import type { EngineContext } from "./context.ts";
import type { Entry } from "./entry.ts";
import type { QueueCounts } from "./events.ts";
import type { Host } from "./host.ts";
import type { Hosts } from "./hosts.ts";

/** A summary of this instance. */
export interface QueueOverview {
  readonly at: number;
  /** Sessions that wait at this instance. */
  readonly pending: number;
  readonly counts: QueueCounts;
  /** Inputs that the store does not have yet. */
  readonly unsent: number;
  /** When the session that has waited longest arrived, over all hosts. Undefined: no session waits. */
  readonly oldestArrivedAt: number | undefined;
  /** How far the store's clock is ahead of this instance's. */
  readonly clockSkewMs: number;
}

/**
 * The sessions of this instance by state: those that wait here, and the slots and ends in the cached books that this
 * instance answered or committed.
 */
export interface SessionTotals {
  readonly total: number;
  readonly pending: number;
  readonly granted: number;
  readonly throttled: number;
  readonly timeout: number;
  readonly canceled: number;
}

/** The state of this instance, for operators and for the checks of the simulator. It contains no tokens. */
export interface QueueDump extends QueueOverview {
  readonly sessions: SessionTotals;
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
  readonly class: string;
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
  /** How many slots it needs. */
  readonly width: number;
  /** What it costs, by the name of the budget. Undefined: the defaults. */
  readonly cost: Costs | undefined;
  /** Undefined: the class of requests that name none. */
  readonly class: string | undefined;
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

/** Cost: O(sessions that wait at this instance). */
export function overviewOf({ engine: { time, counts, unsent }, sessions }: Hosts): QueueOverview {
  return {
    at: time.now(),
    pending: sessions.entries.size,
    counts: { ...counts },
    unsent,
    oldestArrivedAt: oldestArrivedAt(sessions.entries.values()),
    clockSkewMs: time.skewMs,
  };
}

/** Cost: O(hosts, slots and ends that are cached). */
export function sessionTotals(hosts: Hosts): SessionTotals {
  const { engine, sessions } = hosts;
  const by = { granted: 0, throttled: 0, timeout: 0, canceled: 0 };
  for (const { book } of hosts.values()) {
    for (const lease of book.all("lease")) if (lease.instance === engine.instance && !lease.isReleased) by.granted++;
    for (const { end, instance: ender } of book.all("ending"))
      if (ender === engine.instance && end in by) by[end as keyof typeof by]++;
  }
  const pending = sessions.entries.size;
  return { total: pending + by.granted + by.throttled + by.timeout + by.canceled, pending, ...by };
}

export function dumpOf(hosts: Hosts): QueueDump {
  const dumps = Array.from(hosts.values(), (host) => dumpHost(host, hosts.engine));
  return { ...overviewOf(hosts), sessions: sessionTotals(hosts), hosts: dumps };
}

/** Calculates the position of every waiter, in arrival order. Cost: O(n log n) in the waiters of the host. */
export function inspect(host: Host, engine: EngineContext): HostInspection {
  const now = engine.time.now();
  const entries = [...host.entries].sort((a, b) => a.claims.arrivedAt - b.claims.arrivedAt);
  return {
    ...dumpHost(host, engine),
    waiting: entries.map((entry) => {
      const { position } = host.placeOf(entry.id, now);
      const estimatedWaitMs = estimatedWait(host, position, entry);
      return { ...dumpWaiting(entry), position, blockedBy: blockedBy(host, entry.id, now), estimatedWaitMs };
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
    isHot: book.limits !== undefined && book.order.isHot(book),
    oldestArrivedAt: oldestArrivedAt(host.entries),
    isStoreDown: host.isStoreDown,
    breaker: host.breaker(time.now()).phase,
  };
}

function dumpHost(host: Host, engine: EngineContext): HostDump {
  return {
    ...glance(host, engine),
    buckets: Array.from(
      host.book.index.lines,
      ({ bucket, ofClass, places, outsiders, parked, inFlight, obstacle, weighted }) => ({
        bucket,
        class: ofClass.name,
        pending: places + outsiders + parked,
        places,
        inFlight,
        obstacle,
        waitCount: weighted?.waitCount ?? 0,
        virtualTime: weighted?.virtualTime ?? 0,
      }),
    ),
    waiting: Array.from(host.entries, dumpWaiting),
  };
}

function dumpWaiting({ host, claims, calls }: Entry): WaitingDump {
  const waiter = host.book.get("waiter", claims.id);
  const place = waiter === undefined ? "joining" : waiter.isInside ? "inside" : "outside";
  return {
    session: claims.id,
    bucket: claims.bucket,
    place: host.book.get("offer", claims.id) === undefined ? place : "offered",
    isAwake: waiter?.awayAt === undefined,
    arrivedAt: claims.arrivedAt,
    polls: calls.length,
    width: widthOf(claims.demand),
    cost: claims.demand?.cost,
    class: claims.demand?.class,
  };
}

function oldestArrivedAt(entries: Iterable<Entry>): number | undefined {
  let oldest: number | undefined;
  for (const { claims } of entries) if (oldest === undefined || claims.arrivedAt < oldest) oldest = claims.arrivedAt;
  return oldest;
}
