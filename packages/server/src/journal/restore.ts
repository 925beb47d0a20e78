import type { BookRecord, Changes, Head, KeptHost, RecordKind, RecordOf } from "@slotkeeper/queue";
import type { JournalEntry } from "./entry.ts";

/**
 * The state that the entries of a journal describe.
 *
 * RESTORE1  It is the state after the last entry: head and records of a host as the last commit left them.
 * RESTORE2  If the clock was set back, no instant of a host is in the future: all of them move back together, so that
 *     no lease lasts longer.
 * RESTORE3  Every waiter counts as having left at the restart. It keeps its place, and a slot is kept for it for one
 *     `collectMs`.
 */
export class Restored {
  readonly #hosts = new Map<string, MutableHost>();
  keys: readonly string[] | undefined;
  fenceFloor = 0;
  entries = 0;

  apply(entry: JournalEntry): void {
    this.entries++;
    switch (entry.kind) {
      case "keys":
        this.keys = entry.keys;
        return;
      case "floor":
        this.fenceFloor = Math.max(this.fenceFloor, entry.fence);
        return;
      case "host":
        this.#hosts.set(entry.host, new MutableHost(entry.tag, entry.head, entry.records));
        return;
      case "commit":
        this.#commit(entry.host, entry.tag, entry.changes);
    }
  }

  /** The hosts at the time `now`. */
  *hosts(now: number): Iterable<KeptHost> {
    for (const [host, { tag, head, records }] of this.#hosts) {
      const backMs = Math.max(0, head.now - now);
      const moved = Array.from(records.values(), (record) => movedBack(record, backMs));
      const left = moved.map((record) => (record.kind === "waiter" ? { ...record, awayAt: now } : record));
      yield { host, tag, head: headMovedBack(head, backMs), records: left };
    }
  }

  #commit(host: string, tag: string, { head, puts, dels }: Changes): void {
    const known = this.#hosts.get(host);
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

/** The fields of each record that are instants. */
const INSTANTS: { readonly [K in RecordKind]: readonly (keyof RecordOf<K>)[] } = {
  lease: ["grantedAt", "endsAt", "keepUntil"],
  offer: ["offeredAt", "lapsesAt"],
  waiter: ["arrivedAt", "deadlineAt", "awayAt"],
  session: ["keepUntil", "retryAt"],
  account: ["asOf", "denyUntil", "waitCountedAt"],
  cooldown: ["until"],
  absence: ["missedAt"],
  limits: ["loadedAt"],
};

function movedBack(record: BookRecord, backMs: number): BookRecord {
  return backMs === 0 ? record : shifted(record, INSTANTS[record.kind] as readonly (keyof BookRecord)[], backMs);
}

function headMovedBack(head: Head, backMs: number): Head {
  if (backMs === 0) return head;
  const moved = shifted(head, ["now", "meterAt", "lastEndAt", "idleSince", "probedAt"], backMs);
  return { ...moved, breaker: shifted(head.breaker, ["openedAt", "windowStartAt"], backMs) };
}

/** Returns a copy in which these fields, if present, are `backMs` earlier. */
function shifted<T extends object>(value: T, fields: readonly (keyof T)[], backMs: number): T {
  const copy = { ...value };
  for (const field of fields) {
    const at = copy[field];
    if (typeof at === "number") copy[field] = (at - backMs) as T[keyof T];
  }
  return copy;
}
