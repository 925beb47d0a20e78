import type { BookRecord, Changes, Head, KeptHost, RecordKind } from "@slotkeeper/queue";
import type { JournalEntry } from "./entry.ts";
import type { KeptTime } from "./resumed-clock.ts";

/**
 * The state that the entries of a journal describe.
 *
 * RESTORE1  It is the state after the last entry: head and records of a host as the last commit left them.
 * RESTORE2  No instant changes: the time of the store continues (`resumed-clock.ts`).
 * RESTORE3  Every waiter counts as having left at the restart. It keeps its place, and a slot is kept for it for one
 *     `collectMs`.
 */
export class Restored {
  readonly #hosts = new Map<string, MutableHost>();
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
        this.lastAt = Math.max(this.lastAt, entry.head.now);
        this.#hosts.set(entry.host, new MutableHost(entry.tag, entry.head, entry.records));
        return;
      case "commit":
        this.#commit(entry.host, entry.tag, entry.changes);
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

  #commit(host: string, tag: string, { head, puts, dels }: Changes): void {
    const known = this.#hosts.get(host);
    this.lastAt = Math.max(this.lastAt, head?.now ?? 0);
    if (head === undefined) {
      this.fenceFloor = Math.max(this.fenceFloor, known?.head.fence ?? 0);
      this.#hosts.delete(host);
    } else if (known === undefined) this.#hosts.set(host, new MutableHost(tag, head, puts));
    else known.apply(tag, head, puts, dels);
  }
}

class MutableHost {
  tag: string;
  head: Head;
  readonly records = new Map<string, BookRecord>();

  constructor(tag: string, head: Head, records: readonly BookRecord[]) {
    this.tag = tag;
    this.head = head;
    for (const record of records) this.records.set(nameOf(record.kind, record.key), record);
  }

  apply(tag: string, head: Head, puts: Changes["puts"], dels: Changes["dels"]): void {
    for (const [kind, key] of dels) this.records.delete(nameOf(kind, key));
    for (const record of puts) this.records.set(nameOf(record.kind, record.key), record);
    this.tag = tag;
    this.head = head;
  }
}

function nameOf(kind: RecordKind, key: string): string {
  return `${kind} ${key}`;
}
