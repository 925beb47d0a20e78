import type { Lease } from "./lease.ts";
import type { SessionEnd } from "./slot-store.ts";

/** What became of a session: the lease it was granted, or how it ended. */
export interface SessionRecord {
  readonly session: string;
  /** Until it is over: a record outlives its lease by far, and keeps no more of it than that it was. */
  lease: Lease | undefined;
  end: SessionEnd | undefined;
  keepUntil: number;
}

/** Records go once in a second, all that are due: each costs two moves in its life, however many there are. */
const SPAN_MS = 1000;
/** For instances whose clocks differ. That a slow try grants nothing twice does not rest on it: no engine grants past a deadline. */
const GRACE_MS = 1000;

/** Remembers every grant and end until the session's deadline, so that repeating any call gives the same answer. */
export class SessionRecords {
  readonly #records = new Map<string, SessionRecord>();
  /** Sessions by the span of time in which they were due when they were put there; some are due later by now. */
  readonly #bySpan = new Map<number, string[]>();
  #firstSpan = Number.POSITIVE_INFINITY;

  get size(): number {
    return this.#records.size;
  }

  values(): Iterable<SessionRecord> {
    return this.#records.values();
  }

  /** The lease while it lasts; afterwards, and without one, the end. */
  find(session: string, now: number): Lease | SessionEnd | undefined {
    const record = this.#records.get(session);
    if (record === undefined) return undefined;
    const { lease, end, keepUntil } = record;
    if (lease !== undefined && !lease.isOver && !lease.isReleased) return lease;
    return keepUntil + GRACE_MS <= now ? undefined : (end ?? "released");
  }

  grant(session: string, lease: Lease, keepUntil: number): void {
    this.#put({ session, lease, end: undefined, keepUntil });
  }

  end(session: string, end: SessionEnd, keepUntil: number): void {
    this.#put({ session, lease: undefined, end, keepUntil });
  }

  /** The lease of a session is over: that it was is all that is remembered. */
  leaseEnded({ session }: Lease): void {
    const record = this.#records.get(session);
    if (record?.lease === undefined) return;
    record.lease = undefined;
    record.end = "released";
  }

  /**
   * A first call repeated by its `requestId` is the same session with a later deadline: it is remembered until then, or it
   * could be granted a second time between the two.
   */
  keep(session: string, keepUntil: number): void {
    const record = this.#records.get(session);
    if (record !== undefined) record.keepUntil = Math.max(record.keepUntil, keepUntil);
  }

  /** As if it had never been granted: it may be granted again. */
  forget(session: string): void {
    this.#records.delete(session);
  }

  /** Returns how many were dropped. A record outlives its deadline while its lease lasts. */
  prune(now: number): number {
    if (now < this.#firstSpan * SPAN_MS) return 0;
    const before = this.#records.size;
    const due = [...this.#bySpan.keys()].filter((span) => span * SPAN_MS <= now);
    const sessions = due.flatMap((span) => this.#bySpan.get(span) ?? []);
    for (const span of due) this.#bySpan.delete(span);
    for (const session of sessions) this.#review(session, now);
    this.#firstSpan = Math.min(...this.#bySpan.keys());
    return before - this.#records.size;
  }

  #review(session: string, now: number): void {
    const record = this.#records.get(session);
    if (record === undefined) return;
    if (record.lease !== undefined) record.keepUntil = Math.max(record.keepUntil, record.lease.endsAt);
    if (record.keepUntil + GRACE_MS <= now) this.#records.delete(session);
    else this.#file(record);
  }

  #put(record: SessionRecord): void {
    this.#records.set(record.session, record);
    this.#file(record);
  }

  #file({ session, keepUntil }: SessionRecord): void {
    const span = Math.ceil((keepUntil + GRACE_MS) / SPAN_MS);
    const filed = this.#bySpan.get(span);
    if (filed === undefined) this.#bySpan.set(span, [session]);
    else filed.push(session);
    this.#firstSpan = Math.min(this.#firstSpan, span);
  }
}
