import type { HostPolicy, ReleaseRequest, WaiterBatch, WithdrawBatch } from "@slotkeeper/queue";

/** What crosses to the functions, named as they name it. JSON has no Infinity: it goes as a word PostgreSQL reads. */

export type PolicyRecord = { readonly [key: string]: number | string | readonly number[] };

/** Policies are few and long-lived: each is turned once. */
const records = new WeakMap<HostPolicy, PolicyRecord>();

export function policyRecord(policy: HostPolicy): PolicyRecord {
  let record = records.get(policy);
  if (record === undefined) {
    record = { ...limitsOf(policy), ...breakerOf(policy) };
    records.set(policy, record);
  }
  return record;
}

export function batchRecord({ host, instance, policy, isSemaphore, waiters }: WaiterBatch): object {
  return {
    host,
    instance,
    is_semaphore: isSemaphore,
    policy: policyRecord(policy),
    waiters: waiters.map(({ session, bucket, weight, arrivedAt, ttlMs, openMs, limit, isGrantable }) => ({
      session,
      bucket,
      weight,
      arrived_at: arrivedAt,
      ttl_ms: ttlMs,
      open_ms: finite(openMs),
      capacity: limit,
      is_grantable: isGrantable,
    })),
  };
}

export function withdrawRecord({ host, instance, policy, sessions }: WithdrawBatch): object {
  return {
    host,
    instance,
    policy: policyRecord(policy),
    sessions: sessions.map(({ session, end, ttlMs }) => ({ session, ending: end, ttl_ms: ttlMs })),
  };
}

export function releaseRecord({ slotToken, hitAgoMs, status, uncollectedBy }: ReleaseRequest): object {
  return { token: slotToken, hit_ago_ms: hitAgoMs, status, uncollected_by: uncollectedBy };
}

function limitsOf(policy: HostPolicy): PolicyRecord {
  return {
    slots: finite(policy.slots),
    slots_per_bucket: finite(policy.slotsPerBucket),
    waiters: finite(policy.waiters),
    waiters_per_bucket: finite(policy.waitersPerBucket),
    lease_ms: finite(policy.leaseMs),
    max_hold_ms: finite(policy.maxHoldMs),
    cooldown_ms: policy.cooldownMs,
    min_hold_ms: policy.minHoldMs,
    smooth_ms: policy.smoothMs,
    sequence: policy.order,
  };
}

function breakerOf({ breaker }: HostPolicy): PolicyRecord {
  return {
    breaker_window_ms: finite(breaker.windowMs),
    breaker_codes: breaker.protectHttpCodes,
    breaker_ratio_percent: breaker.errorRatioPercent,
    breaker_min_samples: breaker.minSamples,
    breaker_fast_ratio_percent: breaker.fastErrorRatioPercent,
    breaker_fast_min_samples: breaker.fastMinSamples,
    breaker_consecutive: breaker.consecutiveErrors,
    breaker_open_ms: finite(breaker.openMs),
    breaker_probes: finite(breaker.halfOpenProbes),
  };
}

function finite(value: number): number | string {
  return Number.isFinite(value) ? value : String(value);
}
