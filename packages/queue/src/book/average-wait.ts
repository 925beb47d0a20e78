import type { Book } from "./book.ts";

/**
 * The average wait of a host: an EWMA of the waits of sessions that were granted or timed out. It decays while no session
 * waits: a crowd an hour ago says nothing about the next caller.
 */

const OLD_SHARE = 0.8;
/** Not `1 - OLD_SHARE`, which is a little less: a wait that meets a threshold exactly must reach it. */
const NEW_SHARE = 0.2;

export function addWait(book: Book, waitedMs: number): void {
  book.draft.avgWaitMs = OLD_SHARE * book.head.avgWaitMs + NEW_SHARE * Math.max(0, waitedMs);
}

/** A session waits again. The average decays once for each poll interval in which no session waited. */
export function becomeBusy(book: Book, pollIntervalMs: number): void {
  const { idleSince, avgWaitMs } = book.head;
  if (idleSince === undefined) return;
  book.draft.avgWaitMs = avgWaitMs * OLD_SHARE ** ((book.now - idleSince) / pollIntervalMs);
  book.draft.idleSince = undefined;
}

export function becomeIdle(book: Book): void {
  if (book.head.idleSince === undefined && book.head.avgWaitMs > 0) book.draft.idleSince = book.now;
}
