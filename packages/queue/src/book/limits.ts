import type { HostPolicy } from "../host-policy.ts";
import type { Book } from "./book.ts";
import type { LimitsRecord, LiveLimits } from "./records.ts";

/**
 * The limits in force. An instance writes its own limits only if it loaded them after those in the book were loaded,
 * and if it knows the name of the host: without the name, it cannot know the host's own limits.
 */

export interface GivenLimits {
  readonly policy: HostPolicy;
  readonly loadedAt: number;
  readonly hostname: string | undefined;
}

export function useLimits(book: Book, { policy, loadedAt, hostname }: GivenLimits): void {
  if (hostname !== undefined && book.head.hostname !== hostname) book.draft.hostname = hostname;
  const { limits } = book;
  if (limits !== undefined) {
    const isNewer = loadedAt > limits.loadedAt && (hostname !== undefined || book.head.hostname === undefined);
    if (!isNewer || policy === limits.policy || isSame(policy, limits.policy)) return;
  }
  putLimits(book, { ...limits, kind: "limits", key: "", policy, loadedAt });
}

export function useLive(book: Book, live: LiveLimits | undefined): void {
  const { limits } = book;
  if (limits === undefined) return;
  const { live: _, ...rest } = limits;
  putLimits(book, live === undefined ? rest : { ...rest, live });
}

/** A user of a named semaphore joins. The first user sets the capacity. Returns false if the user asks for a different one. */
export function joinCapacity(book: Book, limit: number | undefined): boolean {
  const { capacity } = book.head;
  if (capacity === undefined) {
    const slots = limit ?? book.policy.slots;
    book.setCapacity(slots);
    book.setSlots(slots);
    return true;
  }
  return limit === undefined || limit === capacity;
}

/** The last user has left, so the next user may choose the capacity again. */
export function forgetCapacity(book: Book): void {
  if (book.head.capacity === undefined || book.inFlight > 0 || book.size("waiter") > 0) return;
  book.setCapacity(undefined);
  book.setSlots(book.policy.slots);
}

function putLimits(book: Book, limits: LimitsRecord): void {
  book.put(limits);
  book.setSlots(book.policy.slots);
}

function isSame(a: HostPolicy, b: HostPolicy): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
