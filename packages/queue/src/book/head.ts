import type { HostPolicy } from "../host-policy.ts";
import type { Head, LimitsRecord } from "./records.ts";

/** The head of a new host. Fences start at the time in microseconds, above the fences of an earlier host with the same key. */
export function newHead(now: number, fenceFloor: number): Head {
  return {
    slots: 1,
    fence: Math.max(Math.floor(now * 1000), fenceFloor),
    now,
    progress: 0,
    meterAt: now,
    breaker: { code: 0, errors: 0, successes: 0, consecutive: 0 },
    avgWaitMs: 0,
    // Written out, because a field that is added to an object later is stored apart from it.
    hostname: undefined,
    lastEndAt: undefined,
    capacity: undefined,
    idleSince: undefined,
    weighted: undefined,
    forgottenAt: undefined,
    first: undefined,
    fullAt: undefined,
    chargeLevel: undefined,
    classes: undefined,
  };
}

/**
 * The limits in force: what the users of a semaphore chose (`capacity`), otherwise what an operator set, otherwise the
 * configuration.
 */
export function policyInForce({ policy, live }: LimitsRecord, capacity: number | undefined): HostPolicy {
  if (live === undefined && capacity === undefined) return policy;
  const { isPaused: _, ...limits } = live ?? {};
  return { ...policy, ...limits, ...(capacity === undefined ? {} : { slots: capacity }) };
}

/** An operator has paused the host: holders go on, but nothing new is granted. */
export function isPausedBy(limits: LimitsRecord | undefined): boolean {
  return limits?.live?.isPaused === true;
}
