import { SmallMap } from "../small-map.ts";
import type { SessionRecord } from "./records.ts";

/** Ended sessions by the second in which they may be forgotten: each costs two moves in its life, however many there are. */
const SPAN_MS = 1000;
/**
 * How long after its deadline an end is kept. An instance that has a copy of the session, left behind when its client moved on,
 * gives it up at the deadline: it must find that the session ended, or it would count another end.
 */
export const END_GRACE_MS = 10_000;

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

  /** Takes sessions that are due, at most `most` of them. Their record may be kept for longer by now, or be gone. */
  takeDue(now: number, most: number, find: (session: string) => SessionRecord | undefined): SessionRecord[] {
    const due: SessionRecord[] = [];
    while (this.#firstSpan * SPAN_MS <= now && due.length < most) {
      const filed = this.#bySpan.get(this.#firstSpan) ?? [];
      for (const session of filed.splice(0, most - due.length)) {
        const record = find(session);
        if (record === undefined) continue;
        // By its own span, not by the one it was filed under: a decision made again after `undo` must find the same ones.
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
