import type { StoreFact } from "@slotkeeper/queue";

/** What the journal holds: the store's facts, and the keys that sign session tokens. */
export type JournalEntry = StoreFact | { readonly kind: "keys"; readonly keys: readonly string[] };

/** One line. JSON writes Infinity, which only a policy holds ("no limit"), as null. */
export function encodeEntry(entry: JournalEntry): string {
  return `${JSON.stringify(entry)}\n`;
}

/** Lines come from frames whose checksum is right: they are what `encodeEntry` wrote. */
export function decodeEntries(body: string): JournalEntry[] {
  return body.split("\n").slice(0, -1).map(decodeEntry);
}

function decodeEntry(line: string): JournalEntry {
  const entry = JSON.parse(line) as JournalEntry;
  if (entry.kind !== "host") return entry;
  const policy = Object.entries(entry.policy).map(([key, value]) => [key, value ?? Number.POSITIVE_INFINITY]);
  return { ...entry, policy: Object.fromEntries(policy) };
}
