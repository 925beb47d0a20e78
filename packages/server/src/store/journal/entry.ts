import { decodeBook, decodeChanges, type KeptCommit, type KeptHost, type MemoryStore } from "@slotkeeper/queue";
import type { KeptTime } from "./resumed-clock.ts";

/**
 * The contents of the journal: whole hosts at the beginning of the file, then the accepted commits; the highest fence
 * of forgotten hosts; the start of the machine; and the keys that sign session tokens. The codec of the engine encodes the records.
 */
export type JournalEntry =
  | ({ readonly kind: "host" } & KeptHost)
  | ({ readonly kind: "commit" } & Pick<KeptCommit, "host" | "tag" | "changes">)
  | { readonly kind: "floor"; readonly fence: number }
  /** When the machine was started, in the time of the store, and the system's name for that start. */
  | { readonly kind: "start"; readonly boot: string; readonly at: number }
  | { readonly kind: "keys"; readonly keys: readonly string[] };

/** Encodes an entry as one line. */
export function encodeEntry(entry: JournalEntry): string {
  return `${JSON.stringify(entry)}\n`;
}

/** The lines come from frames with a correct checksum, so they are what `encodeEntry` wrote. */
export function decodeEntries(body: string): JournalEntry[] {
  return body.split("\n").slice(0, -1).map(decodeEntry);
}

function decodeEntry(line: string): JournalEntry {
  const entry = JSON.parse(line) as JournalEntry;
  if (entry.kind === "host") return { ...entry, ...decodeBook(entry) };
  return entry.kind === "commit" ? { ...entry, changes: decodeChanges(entry.changes) } : entry;
}

/** The whole state of a store, as the first entries of a journal. */
export function snapshotOf(
  keys: readonly string[],
  start: KeptTime["start"],
  memory: Pick<MemoryStore, "fenceFloor" | "images">,
): Iterable<JournalEntry> {
  return entriesOf(keys, start, memory);
}

/** One at a time: a store may have a hundred thousand hosts. */
function* entriesOf(...[keys, start, memory]: Parameters<typeof snapshotOf>): Iterable<JournalEntry> {
  yield { kind: "keys", keys };
  if (start !== undefined) yield { kind: "start", ...start };
  yield { kind: "floor", fence: memory.fenceFloor };
  for (const host of memory.images()) yield { kind: "host", ...host };
}
