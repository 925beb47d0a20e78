import type { BookImage, BookRecord, Changes, Head, LimitsRecord, RecordName } from "./records.ts";

/**
 * The one encoding of heads and records: `JSON.stringify` of the objects of `records.ts`, for every store, the journal
 * and notices. JSON has no Infinity and writes null instead. No head or record contains null, and only `slots` of a head
 * and limits contain Infinity ("no limit"), so decoding changes null back to Infinity there. Decoding takes what
 * `JSON.parse` or a database driver made of the text.
 */

/** A record as a row of a table: the columns kind and key, and the other fields. */
export type RecordRow = readonly [...name: RecordName, fields: object];

/** The JSON of the fields of a row. */
export function encodeFields(record: BookRecord): string {
  return JSON.stringify({ ...record, kind: undefined, key: undefined });
}

/** Call `decodeChanges` or `decodeBook` next. */
export function recordOfRow([kind, key, fields]: RecordRow): BookRecord {
  return { kind, key, ...fields } as BookRecord;
}

/** Changes as they come from JSON, with the values that JSON cannot hold. */
export function decodeChanges({ head, puts, dels }: Changes): Changes {
  return { head: head && decodeHead(head), puts: puts.map(decodeRecord), dels };
}

/** A book as it comes from JSON, with the values that JSON cannot hold. */
export function decodeBook({ head, records }: BookImage): BookImage {
  return { head: decodeHead(head), records: records.map(decodeRecord) };
}

function decodeHead(head: Head): Head {
  return { ...head, slots: head.slots ?? Number.POSITIVE_INFINITY };
}

function decodeRecord(record: BookRecord): BookRecord {
  if (record.kind === "limits") return decodeLimits(record);
  // The row of a lease has a column for it.
  return record.kind === "lease" && (record.charge as unknown) === null ? { ...record, charge: undefined } : record;
}

function decodeLimits({ policy, live, ...rest }: LimitsRecord): LimitsRecord {
  return { ...rest, policy: unbounded(policy), ...(live === undefined ? {} : { live: unbounded(live) }) };
}

function unbounded<T extends object>(limits: T): T {
  const entries = Object.entries(limits).map(([key, value]) => [key, value ?? Number.POSITIVE_INFINITY]);
  return Object.fromEntries(entries) as T;
}
