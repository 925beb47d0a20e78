import {
  type BookImage,
  type BookRecord,
  type Changes,
  type CommitNotice,
  type CommitReply,
  decodeBook as decodeImage,
  type ReadReply,
  type RecordName,
  type Tail,
} from "@slotkeeper/queue";
import { decodeChanges } from "./change-text.ts";

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
  return decodeImage({ head, records: rows.map(([kind, key, fields]) => ({ kind, key, ...fields }) as BookRecord) });
}

export function decodeNotice(payload: string): CommitNotice {
  const { base, changes, ...rest } = JSON.parse(payload) as CommitNotice & { readonly base?: string | null };
  if (changes === undefined) return rest;
  return { ...rest, base: base ?? undefined, changes: decodeChanges(changes) };
}

function decodeTail(tail: Tail): Tail {
  if (tail.kind === "changes") {
    const { commits, head } = tail as unknown as { commits: readonly unknown[]; head: Changes["head"] };
    return { kind: "changes", changes: netOf(commits.map(decodeChanges), head) };
  }
  return { kind: "book", book: tail.book === undefined ? undefined : decodeBook(tail.book) };
}

/** The last head, and each record as the last commit that named it left it. */
function netOf(commits: readonly Changes[], head: Changes["head"]): Changes {
  const named = new Map<string, { readonly name: RecordName; readonly record?: BookRecord }>();
  for (const { puts, dels } of commits) {
    for (const name of dels) named.set(name.join(" "), { name });
    for (const record of puts) named.set(`${record.kind} ${record.key}`, { name: [record.kind, record.key], record });
  }
  const all = [...named.values()];
  const puts = all.flatMap(({ record }) => record ?? []);
  return {
    head: decodeImage({ head: head as never, records: [] }).head,
    puts,
    dels: all.filter(({ record }) => record === undefined).map(({ name }) => name),
  };
}
