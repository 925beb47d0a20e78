import type { Head, KeptCommit, RecordKind } from "@slotkeeper/queue";

const DEFERRABLE: ReadonlySet<RecordKind> = new Set(["waiter", "account", "absence"]);

/**
 * Whether a commit only records waiters and use. Losing it breaks no promise, because the token of a session contains its
 * arrival. So a store may answer before it has written the commit.
 */
export function isDeferrable({
  before,
  changes: { head, puts, dels },
}: Pick<KeptCommit, "before" | "changes">): boolean {
  if (before === undefined || head === undefined || puts.length + dels.length === 0) return false;
  if (!puts.every(({ kind }) => DEFERRABLE.has(kind)) || !dels.every(([kind]) => DEFERRABLE.has(kind))) return false;
  return PROMISED.every((field) => before[field] === head[field]);
}

/** The fields of a head that answers depend on: the limits in force, fences, spacing, the breaker. */
const PROMISED = [
  "hostname",
  "slots",
  "fence",
  "capacity",
  "lastEndAt",
  "breaker",
] as const satisfies readonly (keyof Head)[];
