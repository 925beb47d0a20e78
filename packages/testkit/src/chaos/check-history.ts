/**
 * Checks what the clients saw.
 *
 * HIST1  Limits: at no time are more slots in use than the host has, or than a bucket may have.
 * HIST2  Fences: no two grants of a host have the same fence, and a session that asked after a grant had arrived gets a
 *     higher one.
 * HIST3  Ownership: a slot belongs to one session, and a session gets one slot, even if its grant arrives several
 *     times.
 * HIST4  Nothing is lost: every session of a living client is granted, and no client loses a lease that it renewed in
 *     time.
 *
 * It does not find what clients cannot see: a slot that no client uses breaks no rule here. Cost: O(n log n).
 */
import type { History, SessionRecord } from "./history.ts";

export interface HostLimits {
  readonly slots: number;
  readonly slotsPerBucket: number;
}

export interface Violation {
  readonly rule: "limit" | "bucket-limit" | "fence" | "ownership" | "lost-session" | "lost-lease";
  readonly host: string;
  /** The time, by the clock of the clients. */
  readonly at: number;
  readonly detail: string;
}

export function checkHistory({ sessions }: Pick<History, "sessions">, limits: HostLimits): Violation[] {
  const violations: Violation[] = [];
  for (const [host, ofHost] of groupBy(sessions, (session) => session.host)) {
    violations.push(...overuse("limit", host, ofHost, limits.slots));
    for (const [bucket, ofBucket] of groupBy(ofHost, (session) => session.bucket)) {
      violations.push(...overuse("bucket-limit", `${host}, bucket ${bucket}`, ofBucket, limits.slotsPerBucket));
    }
    violations.push(...fencesOutOfOrder(host, ofHost));
  }
  violations.push(...sharedSlots(sessions), ...sessions.flatMap(losses));
  return violations.sort((a, b) => a.at - b.at);
}

/** HIST1. A slot that is released at the instant of a grant counts as released before it. */
function overuse(rule: Violation["rule"], host: string, sessions: readonly SessionRecord[], most: number): Violation[] {
  const steps = sessions.flatMap(({ use }) =>
    use === undefined
      ? []
      : [
          { at: use.from, by: 1 },
          { at: use.until, by: -1 },
        ],
  );
  steps.sort((a, b) => a.at - b.at || a.by - b.by);
  const violations: Violation[] = [];
  let inUse = 0;
  for (const { at, by } of steps) {
    inUse += by;
    if (by > 0 && inUse > most) violations.push({ rule, host, at, detail: `${inUse} slots in use, ${most} allowed` });
  }
  return violations;
}

/** HIST2. */
function fencesOutOfOrder(host: string, sessions: readonly SessionRecord[]): Violation[] {
  const granted = sessions.flatMap(({ id, askedAt, deliveries: [first] }) =>
    first === undefined ? [] : [{ id, askedAt, arrivedAt: first.at, fence: first.fence }],
  );
  const byArrival = [...granted].sort((a, b) => a.arrivedAt - b.arrivedAt);
  const seen = new Map<number, string>();
  const violations: Violation[] = [];
  let arrived = 0;
  let highest = Number.NEGATIVE_INFINITY;
  for (const { id, askedAt, arrivedAt, fence } of granted.sort((a, b) => a.askedAt - b.askedAt)) {
    for (; (byArrival[arrived]?.arrivedAt ?? Number.POSITIVE_INFINITY) < askedAt; arrived++) {
      highest = Math.max(highest, byArrival[arrived]?.fence ?? highest);
    }
    const other = seen.get(fence);
    const detail =
      other === undefined
        ? `${id} got ${fence} after ${highest} had arrived elsewhere`
        : `${id} and ${other} got ${fence}`;
    if (fence <= highest || other !== undefined) violations.push({ rule: "fence", host, at: arrivedAt, detail });
    seen.set(fence, id);
  }
  return violations;
}

/** HIST3. */
function sharedSlots(sessions: readonly SessionRecord[]): Violation[] {
  const owners = new Map<string, string>();
  const violations: Violation[] = [];
  for (const { id, host, deliveries } of sessions) {
    const [first] = deliveries;
    for (const { slotToken, fence, at } of deliveries) {
      const owner = owners.get(slotToken);
      if (owner !== undefined && owner !== id) {
        violations.push({ rule: "ownership", host, at, detail: `the slot of ${owner} was granted to ${id}` });
      }
      owners.set(slotToken, id);
      if (slotToken !== first?.slotToken || fence !== first.fence) {
        violations.push({ rule: "ownership", host, at, detail: `${id} was granted two slots` });
      }
    }
  }
  return violations;
}

/** HIST4. */
function losses({ id, host, deliveries, end, lostLeaseAt, diedAt, askedAt }: SessionRecord): Violation[] {
  if (diedAt !== undefined) return [];
  if (lostLeaseAt !== undefined) {
    return [{ rule: "lost-lease", host, at: lostLeaseAt, detail: `${id} lost a lease that it had renewed in time` }];
  }
  if (deliveries.length > 0) return [];
  return [
    { rule: "lost-session", host, at: end?.at ?? askedAt, detail: `${id} ended as ${end?.result ?? "never answered"}` },
  ];
}

function groupBy(sessions: readonly SessionRecord[], keyOf: (session: SessionRecord) => string) {
  const groups = new Map<string, SessionRecord[]>();
  for (const session of sessions) {
    const key = keyOf(session);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [session]);
    else group.push(session);
  }
  return groups;
}
