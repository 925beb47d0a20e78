import {
  type BookRecord,
  type Changes,
  decodeBook,
  decodeChanges,
  type Head,
  type KeptCommit,
  type KeptHost,
  type MemoryStore,
  type RecordKind,
} from "@slotkeeper/queue";
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

/** The whole state of a store, as the first entries of a journal. One at a time: a store may have a hundred thousand hosts. */
export function* snapshotOf(
  keys: readonly string[],
  start: KeptTime["start"],
  memory: Pick<MemoryStore, "fenceFloor" | "images">,
): Iterable<JournalEntry> {
  yield { kind: "keys", keys };
  if (start !== undefined) yield { kind: "start", ...start };
  yield { kind: "floor", fence: memory.fenceFloor };
  for (const host of memory.images()) yield { kind: "host", ...host };
}

interface RestoredHost {
  readonly tag: string;
  readonly head: Head;
  readonly records: Map<string, BookRecord>;
}

/**
 * The state that the entries of a journal describe.
 *
 * RESTORE1  It is the state after the last entry: head and records of a host as the last commit left them.
 * RESTORE2  No instant changes: the time of the store continues (`resumed-clock.ts`).
 * RESTORE3  Every waiter counts as having left at the restart. It keeps its place, and a slot is kept for it for one
 *     `collectMs`.
 */
export class Restored {
  readonly #hosts = new Map<string, RestoredHost>();
  keys: readonly string[] | undefined;
  start: KeptTime["start"];
  fenceFloor = 0;
  entries = 0;
  /** The time of the last commit. */
  lastAt = 0;

  apply(entry: JournalEntry): void {
    this.entries++;
    switch (entry.kind) {
      case "keys":
        this.keys = entry.keys;
        return;
      case "start":
        this.start = { boot: entry.boot, at: entry.at };
        return;
      case "floor":
        this.fenceFloor = Math.max(this.fenceFloor, entry.fence);
        return;
      case "host":
        this.#hosts.delete(entry.host);
        this.#put(entry.host, entry.tag, { head: entry.head, puts: entry.records, dels: [] });
        return;
      case "commit":
        this.#put(entry.host, entry.tag, entry.changes);
    }
  }

  /** The hosts at the time `now`. */
  *hosts(now: number): Iterable<KeptHost> {
    for (const [host, { tag, head, records }] of this.#hosts) {
      const left = Array.from(records.values(), (record) =>
        record.kind === "waiter" ? { ...record, awayAt: now } : record,
      );
      yield { host, tag, head, records: left };
    }
  }

  #put(host: string, tag: string, { head, puts, dels }: Changes): void {
    const known = this.#hosts.get(host);
    this.lastAt = Math.max(this.lastAt, head?.now ?? 0);
    if (head === undefined) {
      this.fenceFloor = Math.max(this.fenceFloor, known?.head.fence ?? 0);
      this.#hosts.delete(host);
      return;
    }
    const records = known?.records ?? new Map<string, BookRecord>();
    for (const [kind, key] of dels) records.delete(nameOf(kind, key));
    for (const record of puts) records.set(nameOf(record.kind, record.key), record);
    this.#hosts.set(host, { tag, head, records });
  }
}

function nameOf(kind: RecordKind, key: string): string {
  return `${kind} ${key}`;
}

const DEFERRABLE: ReadonlySet<RecordKind> = new Set(["waiter", "account", "absence"]);

/**
 * Whether a commit only records waiters and use. Losing it breaks no promise, because the token of a session contains its
 * arrival. So a store may answer before it has written the commit.
 */
export function isDeferrable({
  before,
  changes: { head, puts, dels },
}: Pick<KeptCommit, "before" | "changes">): boolean {
  if (before === undefined || head === undefined || puts.length + dels.length === 0) return false;
  if (!puts.every(({ kind }) => DEFERRABLE.has(kind)) || !dels.every(([kind]) => DEFERRABLE.has(kind))) return false;
  return PROMISED.every((field) => before[field] === head[field]);
}

/** The fields of a head that answers depend on: the limits in force, fences, spacing, the breaker. */
const PROMISED = [
  "hostname",
  "slots",
  "fence",
  "capacity",
  "lastEndAt",
  "breaker",
] as const satisfies readonly (keyof Head)[];
