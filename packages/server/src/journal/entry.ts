import { type BookRecord, type Changes, type KeptCommit, type KeptHost, revive } from "@slotkeeper/queue";

/**
 * What the journal holds: whole hosts where the file begins, then the commits as they were accepted; the highest fence of
 * hosts that were forgotten; and the keys that sign session tokens. Records are spelled by the engine's codec.
 */
export type JournalEntry =
  | ({ readonly kind: "host" } & KeptHost)
  | ({ readonly kind: "commit" } & Pick<KeptCommit, "host" | "tag" | "changes">)
  | { readonly kind: "floor"; readonly fence: number }
  | { readonly kind: "keys"; readonly keys: readonly string[] };

/** One line. */
export function encodeEntry(entry: JournalEntry): string {
  return `${JSON.stringify(entry)}\n`;
}

/** Lines come from frames whose checksum is right: they are what `encodeEntry` wrote. */
export function decodeEntries(body: string): JournalEntry[] {
  return body.split("\n").slice(0, -1).map(decodeEntry);
}

function decodeEntry(line: string): JournalEntry {
  const entry = JSON.parse(line) as JournalEntry;
  if (entry.kind === "host") return { ...entry, records: revived(entry.records) };
  if (entry.kind !== "commit") return entry;
  const { head, puts, dels }: Changes = entry.changes;
  return { ...entry, changes: { head, puts: revived(puts), dels } };
}

function revived(records: readonly BookRecord[]): BookRecord[] {
  return records.map(revive);
}
