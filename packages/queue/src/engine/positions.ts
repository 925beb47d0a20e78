import { BucketOrder, type OrderClass, type Ranked } from "../order/bucket-order.ts";
import type { BucketQueue } from "./bucket-queue.ts";
import type { HostQueue } from "./host-queue.ts";
import type { Session } from "./session.ts";

/** Up to so many waiters ranks are worked out afresh whenever one changed; beyond, at most once in a poll interval. */
const EXACT_UP_TO = 256;

/**
 * Who would be granted when, if nothing else changed: the pool in its order, each grant counted, then those outside by
 * arrival. Worked out for the whole host at once, O(n log n), and only when somebody is told a position.
 */
export class Positions {
  #ranks: Map<Session, number> | undefined;
  #version = -1;
  #at = Number.NEGATIVE_INFINITY;

  of(session: Session, now: number, pollIntervalMs: number): number {
    const { host } = session;
    const isStale = this.#version !== host.version && (host.pending <= EXACT_UP_TO || now - this.#at >= pollIntervalMs);
    if (isStale) {
      this.#ranks = rank(host, now);
      this.#version = host.version;
      this.#at = now;
    }
    return this.#ranks?.get(session) ?? host.pending;
  }

  /** Nobody waits: what was worked out would only keep the gone alive. */
  forget(): void {
    this.#ranks = undefined;
    this.#version = -1;
  }
}

class Line implements Ranked {
  readonly sessions: Session[] = [];
  next = 0;
  inFlight: number;
  weight: number;
  usedMs: number;
  asOf: number;
  headAt = 0;
  orderIndex = -1;
  orderClass: OrderClass | undefined;

  constructor({ inFlight, weight, usedMs, asOf }: BucketQueue) {
    this.inFlight = inFlight;
    this.weight = weight;
    this.usedMs = usedMs;
    this.asOf = asOf;
  }
}

function rank(host: HostQueue, now: number): Map<Session, number> {
  const ranks = new Map<Session, number>();
  const lines = new Map<BucketQueue, Line>();
  const outside: Session[] = [];
  for (const session of byArrival(host.waiting)) {
    if (session.place === "outside") outside.push(session);
    else lineOf(lines, session.bucket).sessions.push(session);
  }
  const order = new BucketOrder<Line>(host.policy.order === "fifo");
  for (const line of lines.values()) addTo(order, line);
  for (let line = order.best(host.level, now); line !== undefined; line = order.best(host.level, now)) {
    ranks.set(line.sessions[line.next] as Session, ranks.size + 1);
    order.remove(line);
    line.next++;
    line.usedMs += line.inFlight * (now - line.asOf);
    line.asOf = now;
    line.inFlight++;
    if (line.next < line.sessions.length) addTo(order, line);
  }
  for (const session of outside) ranks.set(session, ranks.size + 1);
  return ranks;
}

function byArrival(sessions: Iterable<Session>): Session[] {
  return [...sessions].sort((a, b) => a.claims.arrivedAt - b.claims.arrivedAt);
}

function lineOf(lines: Map<BucketQueue, Line>, bucket: BucketQueue): Line {
  let line = lines.get(bucket);
  if (line === undefined) {
    line = new Line(bucket);
    lines.set(bucket, line);
  }
  return line;
}

function addTo(order: BucketOrder<Line>, line: Line): void {
  line.headAt = line.sessions[line.next]?.claims.arrivedAt ?? 0;
  order.add(line);
}
