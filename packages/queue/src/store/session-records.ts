import { IndexedHeap } from "../indexed-heap.ts";
import type { Lease } from "./lease.ts";
import type { SessionEnd } from "./slot-store.ts";

/** What became of a session: the lease it was granted, or how it ended. */
export interface SessionRecord {
  readonly session: string;
  readonly lease: Lease | undefined;
  readonly end: SessionEnd | undefined;
  keepUntil: number;
  keepIndex: number;
}

/** Remembers every grant and end until the session's deadline, so that repeating any call gives the same answer. */
export class SessionRecords {
  readonly #records = new Map<string, SessionRecord>();
  readonly #byAge = new IndexedHeap<"keepIndex", SessionRecord>("keepIndex", (a, b) => a.keepUntil < b.keepUntil);

  get size(): number {
    return this.#records.size;
  }

  values(): Iterable<SessionRecord> {
    return this.#records.values();
  }

  /** The lease while it lasts; afterwards, and without one, the end. */
  find(session: string): Lease | SessionEnd | undefined {
    const record = this.#records.get(session);
    if (record?.lease === undefined) return record?.end;
    return record.lease.isOver || record.lease.isReleased ? "released" : record.lease;
  }

  grant(session: string, lease: Lease, keepUntil: number): void {
    this.#put({ session, lease, end: undefined, keepUntil, keepIndex: -1 });
  }

  end(session: string, end: SessionEnd, keepUntil: number): void {
    this.#put({ session, lease: undefined, end, keepUntil, keepIndex: -1 });
  }

  /**
   * A first call repeated by its `requestId` is the same session with a later deadline: it is remembered until then, or it
   * could be granted a second time between the two.
   */
  keep(session: string, keepUntil: number): void {
    const record = this.#records.get(session);
    if (record === undefined || record.keepUntil >= keepUntil) return;
    record.keepUntil = keepUntil;
    this.#byAge.update(record);
  }

  /** As if it had never been granted: it may be granted again. */
  forget(session: string): void {
    const record = this.#records.get(session);
    if (record === undefined) return;
    this.#records.delete(session);
    this.#byAge.remove(record);
  }

  /** Returns how many were dropped. A record outlives its deadline while its lease lasts. */
  prune(now: number): number {
    let dropped = 0;
    for (let first = this.#byAge.peek(); first !== undefined && first.keepUntil <= now; first = this.#byAge.peek()) {
      if (first.lease !== undefined && !first.lease.isOver && first.lease.endsAt > now) {
        first.keepUntil = first.lease.endsAt;
        this.#byAge.update(first);
      } else {
        this.forget(first.session);
        dropped++;
      }
    }
    return dropped;
  }

  #put(record: SessionRecord): void {
    this.forget(record.session);
    this.#records.set(record.session, record);
    this.#byAge.push(record);
  }
}
