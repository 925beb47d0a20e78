import type { Book } from "../book/book.ts";
import type { GivenLimits } from "../book/limits.ts";
import type { Input, Note, Outcome } from "../inputs.ts";
import type { SchedulerOptions } from "../options.ts";

/** What a decision needs besides the book and its inputs. A decision never reads a clock or a store. */
export interface DecideContext {
  /** Store time. */
  readonly now: number;
  /** The instance that decides. */
  readonly instance: string;
  readonly limits: GivenLimits;
  readonly isSemaphore: boolean;
  readonly collectMs: number;
  /** How long after its grant a cancellation gives a slot back. */
  readonly cancelMs: number;
  readonly pollIntervalMs: number;
  readonly idleMs: number;
  /** How many ends of sessions the host keeps. */
  readonly mostEnds: number;
  readonly scheduler: SchedulerOptions;
  /** At least 128 random bits, for slot tokens. */
  readonly newSecret: () => string;
  /** Whether this instance has a poll of the session open. */
  readonly isPolledHere: (session: string) => boolean;
  /**
   * Since when the client of a session of this instance has been away, if that is at least `collectMs`. The book may
   * not know it yet.
   */
  readonly awayHere: (session: string) => number | undefined;
  /** Whether a commit of this instance made the lease with this fence, and no call has taken it yet. */
  readonly isUndelivered: (session: string, fence: number) => boolean;
  /** Whether the client has the token of the session, and so may use it at another instance. */
  readonly isTokenSent: (session: string) => boolean;
  /** When an instance last sent a beat or a commit; undefined: not known. */
  readonly seenAt: (instance: string) => number | undefined;
}

/** The state of a decision in progress. */
export interface Deciding {
  readonly book: Book;
  readonly context: DecideContext;
  readonly inputs: readonly Input[];
  readonly notes: Note[];
  /** Other instances whose waiters got an offer or ended. */
  readonly wake: string[];
}

export const DONE: Outcome = { kind: "done" };
export const MISSING: Outcome = { kind: "missing" };
export const FORGOTTEN: Outcome = { kind: "forgotten" };

/** How long an offer lasts for a waiter whose poll is recorded as open at another instance. */
export const OFFER_MS = 50;

/** Adds the instance to those that are notified of the commit. */
export function wakeInstance({ wake }: Deciding, instance: string): void {
  if (!wake.includes(instance)) wake.push(instance);
}
