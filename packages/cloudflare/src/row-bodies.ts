import type { BookRecord } from "@slotkeeper/queue";
import { encodeEntry, type JournalEntry } from "@slotkeeper/server/portable";

/** A row of the storage may have 2 MB. A character takes at most three bytes. */
const MOST_CHARACTERS = 500_000;
/** A record takes up to some hundred characters. */
const RECORDS_PER_ENTRY = 500;

/** The entries as bodies of rows: as few as possible, each small enough for a row. */
export function bodiesOf(entries: Iterable<JournalEntry>): string[] {
  const bodies: string[] = [];
  let body = "";
  for (const entry of entries) {
    for (const part of partsOf(entry)) {
      const line = encodeEntry(part);
      if (body !== "" && body.length + line.length > MOST_CHARACTERS) {
        bodies.push(body);
        body = "";
      }
      body += line;
    }
  }
  bodies.push(body);
  return bodies;
}

/** Entries with few records each, with the same effect one after the other. */
function* partsOf(entry: JournalEntry): Iterable<JournalEntry> {
  if (entry.kind === "host") {
    const { host, tag, head, records } = entry;
    const [first = [], ...more] = inParts(records);
    yield { ...entry, records: first };
    for (const puts of more) yield { kind: "commit", host, tag, changes: { head, puts, dels: [] } };
  } else if (entry.kind === "commit" && entry.changes.puts.length > RECORDS_PER_ENTRY) {
    const [first = [], ...more] = inParts(entry.changes.puts);
    yield { ...entry, changes: { ...entry.changes, puts: first } };
    for (const puts of more) yield { ...entry, changes: { ...entry.changes, puts, dels: [] } };
  } else yield entry;
}

function inParts(records: readonly BookRecord[]): BookRecord[][] {
  const parts: BookRecord[][] = [];
  for (let at = 0; at < records.length; at += RECORDS_PER_ENTRY) parts.push(records.slice(at, at + RECORDS_PER_ENTRY));
  return parts;
}
