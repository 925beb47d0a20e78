import type { Book } from "../book/book.ts";
import type { GivenLimits } from "../book/limits.ts";
import type { Input, Note, Outcome } from "../inputs.ts";
import type { SchedulerOptions } from "../options.ts";

/** What a decision needs beside the book and its inputs. All of it is given: nothing here reads a clock or a store. */
export interface DecideContext {
  /** Store time. */
  readonly now: number;
  /** The instance that decides. */
  readonly instance: string;
  readonly limits: GivenLimits;
  readonly isSemaphore: boolean;
  readonly collectMs: number;
  readonly pollIntervalMs: number;
  readonly idleMs: number;
  readonly scheduler: SchedulerOptions;
  readonly random: () => number;
  /** At least 128 random bits, for slot tokens. */
  readonly newSecret: () => string;
  /** Whether this instance has a poll of the session open. */
  readonly isPolledHere: (session: string) => boolean;
  /** Since when the client of this instance's session has been away, once that is `collectMs` ago; the book may not have it yet. */
  readonly awayHere: (session: string) => number | undefined;
  /** Whether the client of this instance's session has its token, and may ask with it elsewhere. */
  readonly isTokenSent: (session: string) => boolean;
  /** When an instance last sent a beat or a commit; undefined: not known. */
  readonly seenAt: (instance: string) => number | undefined;
}

/** A decision while it is made. */
export interface Deciding {
  readonly book: Book;
  readonly context: DecideContext;
  readonly inputs: readonly Input[];
  readonly notes: Note[];
  /** Other instances whose waiters were offered a slot, or ended. */
  readonly wake: string[];
}

export const DONE: Outcome = { kind: "done" };
export const MISSING: Outcome = { kind: "missing" };

/** How long an offer stands to a waiter whose poll is recorded as open elsewhere. */
export const OFFER_MS = 50;

/** The instance is notified of the commit. */
export function wakeInstance({ wake }: Deciding, instance: string): void {
  if (!wake.includes(instance)) wake.push(instance);
}
