import {
  type BookImage,
  type Changes,
  type CommitNotice,
  decodeChanges,
  type ReadReply,
  revive,
  type Tail,
} from "@slotkeeper/queue";

/** What the functions return, as the port has it. */

export function decodeReply({ now, tag, tail }: ReadReply): ReadReply {
  return { now, tag, tail: decodeTail(tail) };
}

export function decodeBook({ head, records }: BookImage): BookImage {
  return { head, records: records.map(revive) };
}

export function decodeNotice(payload: string): CommitNotice {
  const { base, changes, ...rest } = JSON.parse(payload) as CommitNotice & { readonly base?: string | null };
  if (changes === undefined) return rest;
  return { ...rest, base: base ?? undefined, changes: decodeChanges(JSON.stringify(changes)) };
}

function decodeTail(tail: Tail): Tail {
  if (tail.kind === "changes") return { kind: "changes", commits: tail.commits.map(reviveChanges) };
  return { kind: "book", book: tail.book === undefined ? undefined : decodeBook(tail.book) };
}

function reviveChanges({ head, puts, dels }: Changes): Changes {
  return { head, puts: puts.map(revive), dels };
}
