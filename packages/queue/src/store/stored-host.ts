import {
  type BookImage,
  type BookRecord,
  type Changes,
  type Head,
  type RecordKind,
  type RecordName,
  type RecordOf,
} from "../book/records.ts";
import { RecordsByKind } from "../book/records-by-kind.ts";
import { type Commit, type Refusal, TAIL_LENGTH, type Tag, type Tail } from "./host-store.ts";

/** A commit in the tail, with the names of the records that it changed. */
interface Kept {
  readonly base: Tag | undefined;
  readonly tag: Tag;
  readonly names: readonly RecordName[];
}

const NO_TAIL: readonly Kept[] = [];

/**
 * One host in the memory store: its head, its records, and a tail of the last commits. A commit that no other instance
 * needs is not in the tail. A caller that asks for changes that the tail does not have gets the whole host.
 */
export class StoredHost {
  tag: Tag;
  head: Head;
  reservedBy: string | undefined;
  reservedUntil = 0;
  readonly #records = new RecordsByKind();
  /** The slots of all stored leases and offers, also of those that have ended by time. */
  #stored = 0;
  /** At most `TAIL_LENGTH` commits, oldest first. */
  #tail = NO_TAIL;

  constructor(tag: Tag, head: Head, records: readonly BookRecord[] = []) {
    this.tag = tag;
    this.head = head;
    for (const record of records) this.#set(record.kind, record.key, record);
  }

  /** P4: the commit was accepted. It, or the one after it, is in the tail. */
  has(tag: Tag): boolean {
    return this.tag === tag || this.#tail.some((kept) => kept.tag === tag || kept.base === tag);
  }

  /** P2 and P3: the refusal if the commit would break them, otherwise undefined. */
  refuses({ changes, now }: Commit): Refusal | undefined {
    const { head, puts, dels } = changes;
    if (head === undefined) return undefined;
    if (head.fence < this.head.fence) return "slots";
    let added = 0;
    for (const record of puts) {
      if (record.kind !== "lease" && record.kind !== "offer") continue;
      const before = this.#records.get(record.kind, record.key);
      if (before === undefined && record.kind === "lease" && record.fence <= this.head.fence) return "slots";
      if (liveWidth(before, now) === 0) added += liveWidth(record, now);
    }
    // If all stored slots and the new ones fit, no record needs to be checked.
    if (added === 0 || this.#stored + added <= head.slots) return undefined;
    for (const [kind, key] of dels) added -= liveWidth(this.#records.get(kind, key), now);
    return this.inFlight(now) + added > head.slots ? "slots" : undefined;
  }

  /** Reserves the next commit for this instance until `until`. */
  reserve(instance: string, until: number): void {
    this.reservedBy = instance;
    this.reservedUntil = until;
  }

  apply({ base, tag, changes, hasOthers }: Commit): void {
    const { head, puts, dels } = changes;
    if (head === undefined) return;
    for (const [kind, key] of dels) this.#set(kind, key, undefined);
    for (const record of puts) this.#set(record.kind, record.key, record);
    this.head = head;
    this.tag = tag;
    this.reservedBy = undefined;
    if (hasOthers) this.#tail = [...this.#tail.slice(1 - TAIL_LENGTH), { base, tag, names: namesOf(changes) }];
  }

  /** What changed after `since`, or the whole host. */
  tail(since: Tag | undefined): Tail {
    const names = since === undefined ? undefined : this.#namesAfter(since);
    return names === undefined
      ? { kind: "book", book: this.image() }
      : { kind: "changes", changes: { head: this.head, ...this.#recordsOf(names) } };
  }

  /** The records that commits after `since` changed. Undefined: the tail does not have all of them. */
  #namesAfter(since: Tag): readonly RecordName[] | undefined {
    const names: RecordName[] = [];
    let tag = since;
    for (const kept of this.#tail) {
      if (kept.base !== tag) continue;
      names.push(...kept.names);
      tag = kept.tag;
    }
    return tag === this.tag ? names : undefined;
  }

  /** The named records as they are now. One that is gone was deleted. */
  #recordsOf(names: readonly RecordName[]): Pick<Changes, "puts" | "dels"> {
    const puts: BookRecord[] = [];
    const dels: RecordName[] = [];
    for (const name of new Map(names.map((name) => [name.join(" "), name])).values()) {
      const [kind, key] = name;
      const record = this.#records.get(kind, key);
      if (record === undefined) dels.push(name);
      else puts.push(record);
    }
    return { puts, dels };
  }

  image(): BookImage {
    return { head: this.head, records: [...this.#records] };
  }

  /** The slots of leases and offers that have not ended. */
  inFlight(now: number): number {
    let live = 0;
    for (const lease of this.all("lease")) live += liveWidth(lease, now);
    for (const offer of this.all("offer")) live += liveWidth(offer, now);
    return live;
  }

  /** Waiters before their deadline, so that waiters of a dead instance stop counting at theirs. */
  waiting(now: number): number {
    let waiting = 0;
    for (const { deadlineAt } of this.all("waiter")) if (deadlineAt > now) waiting++;
    return waiting;
  }

  #set(kind: RecordKind, key: string, after: BookRecord | undefined): void {
    if (kind === "lease" || kind === "offer") {
      this.#stored -= liveWidth(this.#records.get(kind, key), Number.NEGATIVE_INFINITY);
      this.#stored += liveWidth(after, Number.NEGATIVE_INFINITY);
    }
    if (after === undefined) this.#records.delete(kind, key);
    else this.#records.set(after);
  }

  all<K extends RecordKind>(kind: K): Iterable<RecordOf<K>> {
    return this.#records.all(kind);
  }
}

/** `refuses` for the first commit of a host: there are no records, and its fences must be above those of forgotten hosts. */
export function refusesFirst({ changes: { head, puts }, now }: Commit, fenceFloor: number): Refusal | undefined {
  if (head === undefined) return undefined;
  let live = 0;
  for (const record of puts) {
    if (record.kind === "lease" && record.fence <= fenceFloor) return "slots";
    live += liveWidth(record, now);
  }
  return head.fence < fenceFloor || live > head.slots ? "slots" : undefined;
}

function namesOf({ puts, dels }: Changes): RecordName[] {
  return [...puts.map(({ kind, key }): RecordName => [kind, key]), ...dels];
}

function liveWidth(record: BookRecord | undefined, now: number): number {
  if (record?.kind === "lease") return record.endsAt > now ? record.width : 0;
  return record?.kind === "offer" && record.lapsesAt > now ? record.width : 0;
}
