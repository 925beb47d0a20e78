import { type BookRecord, type Commit, encodeFields, type LeaseRecord } from "@slotkeeper/queue";
import type { NamedArguments } from "./sql-store.ts";

/**
 * A commit as the arguments of `slotkeeper_commit`: head and records as the codec encodes them, split by table, because
 * taking JSON apart costs the database more than the service. Every call has the same arguments.
 */
export function commitArguments(commit: Commit): NamedArguments {
  const { host, instance, base, tag, now, changes, hasOthers, wake, conflicts } = commit;
  const { head, puts, dels } = changes;
  const names = [...puts.map(({ kind, key }) => [kind, key]), ...dels].map((name) => name.join(" "));
  return {
    p_host: host,
    p_instance: instance,
    p_base: base ?? null,
    p_tag: tag,
    p_now: now,
    p_conflicts: conflicts,
    p_head: head ?? null,
    // The JSON of PostgREST has no Infinity.
    p_slots: head?.slots === Number.POSITIVE_INFINITY ? null : (head?.slots ?? null),
    p_fence: head?.fence ?? null,
    p_offers_until: Math.max(0, ...puts.map((record) => (record.kind === "offer" ? record.lapsesAt : 0))),
    p_records: [
      ...puts.flatMap((record) => (isLease(record) ? [] : [record.kind, record.key, encodeFields(record)])),
      ...dels.flatMap(([kind, key]) => (kind === "lease" ? [] : [kind, key, null])),
    ],
    ...leaseArguments(puts.filter(isLease)),
    p_ended: dels.filter(([kind]) => kind === "lease").map(([, token]) => token),
    p_names: hasOthers ? names : null,
    p_wake: wake,
    p_notice: wake.length > 0 ? JSON.stringify({ host, base, tag, changes }) : null,
  };
}

/** The fields of leases, one lease after the other, in the order of their fences. */
function leaseArguments(given: LeaseRecord[]): NamedArguments {
  const leases = given.sort((a, b) => a.fence - b.fence);
  return {
    p_leases: leases.flatMap(({ key, session, bucket, instance, charge }) => [
      key,
      session,
      bucket,
      instance,
      charge === undefined ? null : JSON.stringify(charge),
    ]),
    p_numbers: leases.flatMap(({ fence, grantedAt, endsAt, keepUntil, isReleased, isProbe, width }) => [
      fence,
      grantedAt,
      endsAt,
      keepUntil,
      Number(isReleased),
      Number(isProbe),
      width,
    ]),
  };
}

function isLease(record: BookRecord): record is LeaseRecord {
  return record.kind === "lease";
}
