import {
  type BookImage,
  type BookRecord,
  type CommitNotice,
  type CommitReply,
  decodeBook,
  decodeChanges,
  type ReadReply,
  type RecordRow,
  recordOfRow,
  type Tail,
} from "@slotkeeper/queue";

/** Decodes the results of the SQL functions, which return records as rows, into the types of the store interface. */

export function decodeReply({ now, tag, tail }: ReadReply): ReadReply {
  return { now, tag, tail: decodeTail(tail) };
}

export function decodeCommitReply(reply: CommitReply): CommitReply {
  return reply.isOk ? reply : { isOk: false, reason: reply.reason, ...decodeReply(reply) };
}

export function decodeNotice(payload: string): CommitNotice {
  const { base, changes, ...rest } = JSON.parse(payload) as CommitNotice & { readonly base?: string | null };
  if (changes === undefined) return rest;
  return { ...rest, base: base ?? undefined, changes: decodeChanges(changes) };
}

export function decodeRows({ head, records }: BookImage): BookImage {
  return decodeBook({ head, records: recordsOf(records) });
}

function decodeTail(tail: Tail): Tail {
  if (tail.kind === "book") return { kind: "book", book: tail.book && decodeRows(tail.book) };
  const { head, puts, dels } = tail.changes;
  return { kind: "changes", changes: decodeChanges({ head, puts: recordsOf(puts), dels }) };
}

function recordsOf(rows: readonly BookRecord[]): BookRecord[] {
  return (rows as unknown as readonly RecordRow[]).map(recordOfRow);
}
