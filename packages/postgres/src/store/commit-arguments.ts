import type { BookRecord, Changes, Commit, Head, OfferRecord, RecordOf } from "@slotkeeper/queue";
import { encodeChanges } from "./change-text.ts";
import type { NamedArguments } from "./sql-store.ts";

/**
 * A commit as the arguments of `slotkeeper_commit`, split by table, so that SQL does not need to parse JSON. Every call
 * has the same arguments.
 */
export function commitArguments(commit: Commit): NamedArguments {
  const { host, instance, base, tag, now, changes, isShared, wake, conflicts } = commit;
  const { head, puts, dels } = changes;
  return {
    p_host: host,
    p_instance: instance,
    p_base: base ?? null,
    p_tag: tag,
    p_now: now,
    p_conflicts: conflicts,
    p_forgets: head === undefined,
    ...headArguments(head),
    p_offers_until: Math.max(0, ...puts.filter(isOffer).map(({ lapsesAt }) => lapsesAt)),
    p_changes: head === undefined || !isShared ? null : encodeChanges(changes, head),
    p_records: recordList(changes),
    ...leaseArguments(puts),
    p_ended: dels.filter(([kind]) => kind === "lease").map(([, token]) => token),
    p_wake: wake,
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
    p_idle_since: head.idleSince ?? null,
    p_weighted: head.weighted ?? null,
    p_progress: head.progress ?? null,
    p_meter_at: head.meterAt ?? null,
    p_last_end_at: head.lastEndAt ?? null,
    p_fence: head.fence ?? null,
    p_forgotten_at: head.forgottenAt ?? null,
  };
}

/** Records other than leases, as kind, key and data, one after the other. A deleted record has no data. */
function recordList({ puts, dels }: Changes): (string | null)[] {
  const list: (string | null)[] = [];
  for (const record of puts) if (!isLease(record)) list.push(record.kind, record.key, dataOf(record));
  for (const [kind, key] of dels) if (kind !== "lease") list.push(kind, key, null);
  return list;
}

/** The other fields as JSON. `kind` and `key` are columns of their own. */
function dataOf(record: BookRecord): string {
  return JSON.stringify({ ...record, kind: undefined, key: undefined });
}

/** The fields of leases, one lease after the other, in the order of their fences. */
function leaseArguments(puts: Changes["puts"]): NamedArguments {
  const leases = puts.filter(isLease).sort((a, b) => a.fence - b.fence);
  return {
    p_names: leases.flatMap(({ key, session, bucket, instance }) => [key, session, bucket, instance]),
    p_numbers: leases.flatMap(({ fence, grantedAt, endsAt, keepUntil, isReleased, isProbe }) => [
      fence,
      grantedAt,
      endsAt,
      keepUntil,
      Number(isReleased),
      Number(isProbe),
    ]),
  };
}

function isLease(record: BookRecord): record is RecordOf<"lease"> {
  return record.kind === "lease";
}

function isOffer(record: BookRecord): record is OfferRecord {
  return record.kind === "offer";
}
