import {
  type BookImage,
  type BookRecord,
  type CommitNotice,
  type CommitReply,
  type ReadReply,
  revive,
  type Tail,
} from "@slotkeeper/queue";
import { decodeChanges, withSlots } from "./change-text.ts";

/** Decodes the results of the SQL functions into the types of the store interface. */

export function decodeReply({ now, tag, tail }: ReadReply): ReadReply {
  return { now, tag, tail: decodeTail(tail) };
}

export function decodeCommitReply(reply: CommitReply): CommitReply {
  return reply.isOk ? reply : { isOk: false, reason: reply.reason, ...decodeReply(reply) };
}

/** Records are rows: kind, key and the other fields. */
export function decodeBook({ head, records }: BookImage): BookImage {
  const rows = records as unknown as readonly (readonly [kind: string, key: string, fields: object])[];
  return {
    head: withSlots(head),
    records: rows.map(([kind, key, fields]) => revive({ kind, key, ...fields } as BookRecord)),
  };
}

export function decodeNotice(payload: string): CommitNotice {
  const { base, changes, ...rest } = JSON.parse(payload) as CommitNotice & { readonly base?: string | null };
  if (changes === undefined) return rest;
  return { ...rest, base: base ?? undefined, changes: decodeChanges(changes) };
}

function decodeTail(tail: Tail): Tail {
  if (tail.kind === "changes") return { kind: "changes", commits: tail.commits.map(decodeChanges) };
  return { kind: "book", book: tail.book === undefined ? undefined : decodeBook(tail.book) };
}
