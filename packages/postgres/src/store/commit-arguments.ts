import type { BookRecord, Changes, Commit, Head, OfferRecord, RecordOf } from "@slotkeeper/queue";
import { encodeChanges } from "./change-text.ts";
import type { NamedArguments } from "./sql-store.ts";

/**
 * A commit as the arguments of `slotkeeper_commit`, split by table, so that SQL does not need to parse JSON. Every call
 * has the same arguments.
 */
export function commitArguments({ host, instance, base, tag, now, changes, wake, conflicts }: Commit): NamedArguments {
  const { head, puts, dels } = changes;
  return {
    p_host: host,
    p_instance: instance,
    p_base: base ?? null,
    p_tag: tag,
    p_now: now,
    ...headArguments(head),
    p_offers_until: Math.max(0, ...puts.filter(isOffer).map(({ lapsesAt }) => lapsesAt)),
    p_changes: head === undefined ? null : encodeChanges(changes, head),
    ...recordArguments(changes),
    p_leases: puts.filter(isLease).map((lease) => JSON.stringify(lease)),
    p_ended: dels.filter(([kind]) => kind === "lease").map(([, token]) => token),
    p_wake: wake,
    p_conflicts: conflicts,
  };
}

/** All null for a forgotten host. `p_slots` is null if there is no limit, because the JSON of PostgREST has no Infinity. */
function headArguments(head: Partial<Head> = {}): NamedArguments {
  return {
    p_hostname: head.hostname ?? null,
    p_breaker: head.breaker ?? null,
    p_capacity: head.capacity ?? null,
    p_slots: head.slots === Number.POSITIVE_INFINITY ? null : (head.slots ?? null),
    p_avg_wait_ms: head.avgWaitMs ?? null,
    p_is_hot: head.isHot ?? null,
    p_idle_since: head.idleSince ?? null,
    p_probed_at: head.probedAt ?? null,
    p_turn_at: head.turnAt ?? null,
    p_progress: head.progress ?? null,
    p_meter_at: head.meterAt ?? null,
    p_last_end_at: head.lastEndAt ?? null,
    p_fence: head.fence ?? null,
  };
}

/** Records other than leases: kinds, keys and data. A deleted record has no data. */
function recordArguments({ puts, dels }: Changes): NamedArguments {
  const rows = [
    ...puts.filter((record) => !isLease(record)).map(({ kind, key, ...data }) => [kind, key, JSON.stringify(data)]),
    ...dels.filter(([kind]) => kind !== "lease").map(([kind, key]) => [kind, key, null]),
  ];
  return {
    p_kinds: rows.map(([kind]) => kind),
    p_keys: rows.map(([, key]) => key),
    p_data: rows.map(([, , data]) => data),
  };
}

function isLease(record: BookRecord): record is RecordOf<"lease"> {
  return record.kind === "lease";
}

function isOffer(record: BookRecord): record is OfferRecord {
  return record.kind === "offer";
}
