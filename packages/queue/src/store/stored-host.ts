import type { BookImage, BookRecord, Changes, Head, RecordKind, RecordOf } from "../book/records.ts";
import { RecordsByKind } from "../book/records-by-kind.ts";
import { type Commit, type Refusal, TAIL_LENGTH, type Tag, type Tail } from "./host-store.ts";

interface Kept {
  readonly base: Tag | undefined;
  readonly tag: Tag;
  readonly changes: Changes;
}

/** One host as the memory store keeps it: the records themselves, shared with the books of the engines, and the tail. */
export class StoredHost {
  tag: Tag;
  head: Head;
  reservedBy: string | undefined;
  reservedUntil = 0;
  readonly #records = new RecordsByKind();
  #tail: Kept[] = [];

  constructor(tag: Tag, head: Head, records: Iterable<BookRecord> = []) {
    this.tag = tag;
    this.head = head;
    for (const record of records) this.#records.set(record);
  }

  /** P4: the tail has this commit already. */
  has(tag: Tag): boolean {
    return this.tag === tag || this.#lastCommits().some((kept) => kept.tag === tag);
  }

  /** P2 and P3: undefined, or why the commit would break them. */
  refuses({ changes, now }: Commit): Refusal | undefined {
    const { head, puts, dels } = changes;
    if (head === undefined) return undefined;
    if (head.fence < this.head.fence) return "slots";
    let added = 0;
    for (const record of puts) {
      if (record.kind !== "lease" && record.kind !== "offer") continue;
      const before = this.#records.get(record.kind, record.key);
      if (before === undefined && record.kind === "lease" && record.fence <= this.head.fence) return "slots";
      if (isLive(record, now) && !isLive(before, now)) added++;
    }
    // Where all that is stored would fit, nothing need be looked at.
    const stored = this.#records.size("lease") + this.#records.size("offer");
    if (added === 0 || stored + added <= head.slots) return undefined;
    for (const [kind, key] of dels) if (isLive(this.#records.get(kind, key), now)) added--;
    return this.inFlight(now) + added > head.slots ? "slots" : undefined;
  }

  /** The next commit is this instance's, until then. */
  reserve(instance: string, until: number): void {
    this.reservedBy = instance;
    this.reservedUntil = until;
  }

  /** `base`: undefined for the first commit of a host. */
  apply(base: Tag | undefined, tag: Tag, changes: Changes): void {
    const { head, puts, dels } = changes;
    if (head === undefined) return;
    for (const [kind, key] of dels) this.#records.delete(kind, key);
    for (const record of puts) this.#records.set(record);
    this.head = head;
    this.tag = tag;
    this.reservedBy = undefined;
    const kept = { base, tag, changes };
    // An array that grows leaves room for 16 more: many hosts are used once.
    if (this.#tail.length < 4) this.#tail = [...this.#tail, kept];
    else this.#tail.push(kept);
    if (this.#tail.length >= 2 * TAIL_LENGTH) this.#tail = this.#lastCommits();
  }

  /** From `since` to now. */
  tail(since: Tag | undefined): Tail {
    if (since === this.tag) return { kind: "changes", commits: [] };
    const tail = this.#lastCommits();
    const first = since === undefined ? -1 : tail.findIndex(({ base }) => base === since);
    if (first === -1) return { kind: "book", book: this.image() };
    return { kind: "changes", commits: tail.slice(first).map(({ changes }) => changes) };
  }

  image(): BookImage {
    return { head: this.head, records: [...this.#records] };
  }

  /** Leases and offers that are not over. */
  inFlight(now: number): number {
    let live = 0;
    for (const lease of this.#records.all("lease")) if (isLive(lease, now)) live++;
    for (const offer of this.#records.all("offer")) if (isLive(offer, now)) live++;
    return live;
  }

  /** Those whose deadline is not over: what a dead instance left counts no longer than that. */
  waiting(now: number): number {
    let waiting = 0;
    for (const { deadlineAt } of this.#records.all("waiter")) if (deadlineAt > now) waiting++;
    return waiting;
  }

  values<K extends RecordKind>(kind: K): Iterable<RecordOf<K>> {
    return this.#records.all(kind);
  }

  #lastCommits(): Kept[] {
    return this.#tail.slice(-TAIL_LENGTH);
  }
}

/** The same for the first commit of a host: there is no record, and its fences must be above those of forgotten hosts. */
export function refusesFirst({ changes: { head, puts }, now }: Commit, fenceFloor: number): Refusal | undefined {
  if (head === undefined) return undefined;
  let live = 0;
  for (const record of puts) {
    if (record.kind === "lease" && record.fence <= fenceFloor) return "slots";
    if (isLive(record, now)) live++;
  }
  return head.fence < fenceFloor || live > head.slots ? "slots" : undefined;
}

function isLive(record: BookRecord | undefined, now: number): boolean {
  return (record?.kind === "lease" && record.endsAt > now) || (record?.kind === "offer" && record.lapsesAt > now);
}
