import {
  type BookImage,
  type BookRecord,
  type Changes,
  type Head,
  RECORD_KINDS,
  type RecordKind,
  type RecordName,
  type RecordOf,
} from "../book/records.ts";
import { RecordsByKind } from "../book/records-by-kind.ts";
import { type Commit, type RecordsAt, type Refusal, TAIL_LENGTH, type Tag, type Tail } from "./host-store.ts";

interface Kept {
  readonly base: Tag | undefined;
  readonly tag: Tag;
  /** The records that the commit changed. Undefined: STORED3. */
  readonly names: readonly RecordName[] | undefined;
}

const NO_RECORDS: RecordsAt = { allAt: () => [] };
const NO_TAIL: readonly Kept[] = [];

/**
 * One host in the memory store.
 *
 * STORED1 Leases and offers are kept here, so that P2 and P3 are checked against what was committed.
 * STORED2 Other records are read from the book of the committer if the commit had one, otherwise they are kept here.
 *   Until the next commit is accepted, that book is at this host's tag, or its decision in progress is the commit that
 *   led to the tag.
 * STORED3 The tail starts again after a commit that came with its book: the engine of that book is the only one, and
 *   repeats at most its last commit (P4). For another commit that no other instance needs (`isShared`), the tail has only
 *   the tag. A caller that asks for changes that the tail does not have gets the whole host.
 */
export class StoredHost {
  tag: Tag;
  head: Head;
  reservedBy: string | undefined;
  reservedUntil = 0;
  readonly #occupied = new RecordsByKind();
  #others: RecordsAt = NO_RECORDS;
  /** At most `TAIL_LENGTH` commits, oldest first. */
  #tail = NO_TAIL;

  constructor(tag: Tag, head: Head, records: readonly BookRecord[] = []) {
    this.tag = tag;
    this.head = head;
    for (const record of records) this.#recordsFor(record.kind).set(record);
  }

  /** P4: the tail already has this commit. */
  has(tag: Tag): boolean {
    return this.tag === tag || this.#tail.some((kept) => kept.tag === tag);
  }

  /** P2 and P3: the refusal if the commit would break them, otherwise undefined. */
  refuses({ changes, now }: Commit): Refusal | undefined {
    const { head, puts, dels } = changes;
    if (head === undefined) return undefined;
    if (head.fence < this.head.fence) return "slots";
    let added = 0;
    for (const record of puts) {
      if (record.kind !== "lease" && record.kind !== "offer") continue;
      const before = this.#occupied.get(record.kind, record.key);
      if (before === undefined && record.kind === "lease" && record.fence <= this.head.fence) return "slots";
      if (isLive(record, now) && !isLive(before, now)) added++;
    }
    // If all stored slots and the new ones fit, no record needs to be checked.
    const stored = this.#occupied.size("lease") + this.#occupied.size("offer");
    if (added === 0 || stored + added <= head.slots) return undefined;
    for (const [kind, key] of dels) if (isLive(this.#occupied.get(kind, key), now)) added--;
    return this.inFlight(now) + added > head.slots ? "slots" : undefined;
  }

  /** Reserves the next commit for this instance until `until`. */
  reserve(instance: string, until: number): void {
    this.reservedBy = instance;
    this.reservedUntil = until;
  }

  /** `book`: contains the records (STORED2). */
  apply({ base, tag, changes, isShared }: Commit, book: RecordsAt | undefined): void {
    const { head, puts, dels } = changes;
    if (head === undefined) return;
    for (const [kind, key] of dels) if (book === undefined || isSlot(kind)) this.#recordsFor(kind).delete(kind, key);
    for (const record of puts) if (book === undefined || isSlot(record.kind)) this.#recordsFor(record.kind).set(record);
    this.head = head;
    this.tag = tag;
    this.reservedBy = undefined;
    if (book === undefined) {
      const kept = { base, tag, names: isShared ? namesOf(changes) : undefined };
      this.#tail = [...this.#tail.slice(1 - TAIL_LENGTH), kept];
    } else {
      this.#others = book;
      this.#tail = NO_TAIL;
    }
  }

  /** What changed after `since`, or the whole host. */
  tail(since: Tag | undefined): Tail {
    const names = since === undefined ? undefined : this.#namesAfter(since);
    return names === undefined
      ? { kind: "book", book: this.image() }
      : { kind: "changes", changes: { head: this.head, ...this.#recordsOf(names) } };
  }

  /** The records that commits after `since` changed. Undefined: not known. */
  #namesAfter(since: Tag): readonly RecordName[] | undefined {
    if (since === this.tag) return [];
    const first = this.#tail.findIndex(({ base }) => base === since);
    const after = first === -1 ? [undefined] : this.#tail.slice(first).map(({ names }) => names);
    return after.includes(undefined) ? undefined : (after as (readonly RecordName[])[]).flat();
  }

  /** The named records as they are now. One that is gone was deleted. */
  #recordsOf(names: readonly RecordName[]): Pick<Changes, "puts" | "dels"> {
    const puts: BookRecord[] = [];
    const dels: RecordName[] = [];
    for (const name of new Map(names.map((name) => [name.join(" "), name])).values()) {
      const [kind, key] = name;
      const record = this.#recordsFor(kind).get(kind, key);
      if (record === undefined) dels.push(name);
      else puts.push(record);
    }
    return { puts, dels };
  }

  image(): BookImage {
    return { head: this.head, records: RECORD_KINDS.flatMap((kind): BookRecord[] => [...this.values(kind)]) };
  }

  /** Leases and offers that have not ended. */
  inFlight(now: number): number {
    let live = 0;
    for (const lease of this.values("lease")) if (isLive(lease, now)) live++;
    for (const offer of this.values("offer")) if (isLive(offer, now)) live++;
    return live;
  }

  /** Waiters before their deadline, so that waiters of a dead instance stop counting at theirs. */
  waiting(now: number): number {
    let waiting = 0;
    for (const { deadlineAt } of this.values("waiter")) if (deadlineAt > now) waiting++;
    return waiting;
  }

  values<K extends RecordKind>(kind: K): Iterable<RecordOf<K>> {
    return isSlot(kind) ? this.#occupied.all(kind) : this.#others.allAt(this.tag, kind);
  }

  /** The collection for records of this kind. */
  #recordsFor(kind: RecordKind): RecordsByKind {
    if (isSlot(kind)) return this.#occupied;
    if (this.#others instanceof RecordsByKind) return this.#others;
    const copies = new RecordsByKind();
    for (const other of RECORD_KINDS)
      if (!isSlot(other)) for (const record of this.#others.allAt(this.tag, other)) copies.set(record);
    this.#others = copies;
    return copies;
  }
}

/** `refuses` for the first commit of a host: there are no records, and its fences must be above those of forgotten hosts. */
export function refusesFirst({ changes: { head, puts }, now }: Commit, fenceFloor: number): Refusal | undefined {
  if (head === undefined) return undefined;
  let live = 0;
  for (const record of puts) {
    if (record.kind === "lease" && record.fence <= fenceFloor) return "slots";
    if (isLive(record, now)) live++;
  }
  return head.fence < fenceFloor || live > head.slots ? "slots" : undefined;
}

function namesOf({ puts, dels }: Changes): RecordName[] {
  return [...puts.map(({ kind, key }): RecordName => [kind, key]), ...dels];
}

function isSlot(kind: RecordKind): boolean {
  return kind === "lease" || kind === "offer";
}

function isLive(record: BookRecord | undefined, now: number): boolean {
  return (record?.kind === "lease" && record.endsAt > now) || (record?.kind === "offer" && record.lapsesAt > now);
}
