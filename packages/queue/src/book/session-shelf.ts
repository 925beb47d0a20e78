import { SmallMap } from "../small-map.ts";
import type { SessionRecord } from "./records.ts";

/** Sessions are grouped by the second in which they may be forgotten. */
const SPAN_MS = 1000;
/**
 * How long after its deadline an end is kept. Another instance may have an old copy of the session, from before its
 * client moved on. It ends that copy at the deadline and must then find the recorded end. Otherwise it would count a
 * second end.
 */
export const END_GRACE_MS = 10_000;

/**
 * Ended sessions, grouped by when they may be forgotten. Each session is moved twice in its life, regardless of their
 * number.
 */
export class SessionShelf {
  readonly #bySpan = new SmallMap<number, string[]>();
  #firstSpan = Number.POSITIVE_INFINITY;

  add({ key, keepUntil }: SessionRecord): void {
    const span = spanOf(keepUntil);
    const filed = this.#bySpan.get(span);
    if (filed === undefined) this.#bySpan.set(span, [key]);
    else filed.push(key);
    this.#firstSpan = Math.min(this.#firstSpan, span);
  }

  /** Removes and returns sessions that are due, at most `most` of them. Skips those that are gone or are now kept longer. */
  takeDue(now: number, most: number, find: (session: string) => SessionRecord | undefined): SessionRecord[] {
    const due: SessionRecord[] = [];
    while (this.#firstSpan * SPAN_MS <= now && due.length < most) {
      const filed = this.#bySpan.get(this.#firstSpan) ?? [];
      for (const session of filed.splice(0, most - due.length)) {
        const record = find(session);
        if (record === undefined) continue;
        // Check the record, not its group: a decision that runs again after `undo` must find the same sessions.
        if (spanOf(record.keepUntil) * SPAN_MS <= now) due.push(record);
        else this.add(record);
      }
      if (filed.length > 0) break;
      this.#bySpan.delete(this.#firstSpan);
      this.#firstSpan = Math.min(...this.#bySpan.keys());
    }
    return due;
  }
}

function spanOf(keepUntil: number): number {
  return Math.ceil((keepUntil + END_GRACE_MS) / SPAN_MS);
}
