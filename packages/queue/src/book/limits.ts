import type { HostPolicy } from "../host-policy.ts";
import type { Book } from "./book.ts";
import { keepSpent } from "./budgets.ts";
import { hasClasses, reweigh } from "./class-use.ts";
import { forgetCounted } from "./leases.ts";
import type { LimitsRecord, LiveLimits, LiveSettings } from "./records.ts";
import { startAccounts } from "./use.ts";

/**
 * The limits in force.
 *
 * LIMITS1 Once a caller has sent the name of a host, the book has the limits of that name: at every instance and for all
 *   callers, also for those that send only the hash. Without the name, the host's own limits cannot be known.
 * LIMITS2 Apart from that, an instance writes its limits if it loaded them after those in the book were loaded, and if
 *   they differ or the host is in use. So the limits do not alternate, and in the end those of the last load are in
 *   force. At a host in use the time of the load counts even if nothing else changed: otherwise an instance with an
 *   older configuration could grant by it, until this one decides again. At the other hosts, of which there may be
 *   many, a reload without a change writes nothing.
 * An instance that decides knows the name if the book has it, so callers without the name change no limits.
 */

export interface GivenLimits {
  readonly policy: HostPolicy;
  readonly loadedAt: number;
  readonly hostname: string | undefined;
}

/** Returns the limits that were in force before. Undefined: the host had none. */
export function useLimits(book: Book, given: GivenLimits): HostPolicy | undefined {
  const before = book.limits === undefined ? undefined : book.policy;
  takeLimits(book, given);
  if (book.policy === before) useClasses(book);
  else useOtherLimits(book, before);
  return before;
}

function takeLimits(book: Book, { policy, loadedAt, hostname }: GivenLimits): void {
  if (hostname !== undefined && book.head.hostname !== hostname) book.draft.hostname = hostname;
  const { limits } = book;
  // Limits of no name, or of another one, are replaced whenever they were loaded.
  if (limits !== undefined && limits.hostname === hostname) {
    if (loadedAt <= limits.loadedAt) return;
    if (!isInUse(book) && isSame(policy, limits.policy)) return;
  }
  putLimits(book, { kind: "limits", key: "", policy, loadedAt, hostname, live: limits?.live });
}

/** Replaces the limits that an operator has set. */
export function setLiveLimits(book: Book, limits: LiveLimits | undefined): void {
  setLive(book, { ...limits, ...(book.isPaused ? { isPaused: true } : {}) });
}

/** Pauses the host, or lets it go on. */
export function setPaused(book: Book, isPaused: boolean): void {
  const { isPaused: _, ...limits } = book.live ?? {};
  setLive(book, { ...limits, ...(isPaused ? { isPaused } : {}) });
}

function setLive(book: Book, live: LiveSettings): void {
  const { limits } = book;
  if (limits === undefined || JSON.stringify(limits.live ?? {}) === JSON.stringify(live)) return;
  putLimits(book, { ...limits, live: Object.keys(live).length === 0 ? undefined : live });
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
  if (book.head.capacity === undefined || isInUse(book)) return;
  book.setCapacity(undefined);
  book.setSlots(book.policy.slots);
}

function putLimits(book: Book, limits: LimitsRecord): void {
  book.put(limits);
  book.setSlots(book.policy.slots);
}

function isInUse(book: Book): boolean {
  return book.inFlight > 0 || book.size("waiter") > 0;
}

export function isSame(a: HostPolicy, b: HostPolicy): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}

/** `before`: the limits that the accounts belong to. */
function useOtherLimits(book: Book, before: HostPolicy | undefined): void {
  keepSpent(book);
  if (before !== undefined && before.order !== book.policy.order) startOrder(book, hasClasses(book));
  else useClasses(book);
  reweigh(book);
}

/** Call before a session joins, with its class. All accounts start again with the first class, and after the last one. */
export function useClasses(book: Book, joining?: string): void {
  const isOn = hasClasses(book, joining);
  if (isOn !== (book.head.classes !== undefined)) startOrder(book, isOn);
}

function startOrder(book: Book, isWithClasses: boolean): void {
  startAccounts(book, isWithClasses);
  forgetCounted(book);
}
