import type { BookImage, BookRecord, Changes, LimitsRecord } from "./records.ts";

/**
 * Records as JSON, the same for every store and the journal. JSON has no Infinity and writes null instead. Only limits
 * contain Infinity ("no limit") and no record contains null, so `revive` changes null back to Infinity in limits.
 */

/** Changes, a book or a record as JSON text. */
export function encode(value: Changes | BookImage | BookRecord): string {
  return JSON.stringify(value);
}

/** The changes of a commit from their JSON text. Throws a `SyntaxError` for anything else. */
export function decodeChanges(text: string): Changes {
  const changes = JSON.parse(text) as Changes;
  return { head: changes.head ?? undefined, puts: changes.puts.map(revive), dels: changes.dels };
}

/** One record from its JSON text. Throws a `SyntaxError` for anything else. */
export function decodeRecord(text: string): BookRecord {
  return revive(JSON.parse(text) as BookRecord);
}

/** Restores Infinity in a record that a database driver has already parsed from JSON. */
export function revive(record: BookRecord): BookRecord {
  return record.kind === "limits" ? reviveLimits(record) : record;
}

function reviveLimits({ policy, live, ...rest }: LimitsRecord): LimitsRecord {
  return { ...rest, policy: unbounded(policy), ...(live === undefined ? {} : { live: unbounded(live) }) };
}

function unbounded<T extends object>(limits: T): T {
  const entries = Object.entries(limits).map(([key, value]) => [key, value ?? Number.POSITIVE_INFINITY]);
  return Object.fromEntries(entries) as T;
}
