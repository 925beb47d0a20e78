import type { DecideContext } from "../decide/deciding.ts";
import type { Note } from "../inputs.ts";
import type { HostCache, Touched } from "./host-cache.ts";

/** What a cycle needs from its host. */
export interface CycleHost {
  readonly key: string;
  readonly cache: HostCache;
  /** Sessions of this instance wait at the host. */
  readonly hasPending: boolean;
  /** This instance keeps sessions of the host, including ended ones, so the host must not be dropped. */
  readonly isRemembered: boolean;
  decideContext(): DecideContext;
  /** Records have changed. Updates the sessions of this instance. */
  settle(touched: Touched): void;
  note(note: Note): void;
  /** The store has forgotten the host, or this instance no longer needs it. */
  drop(): void;
  /** The store answered or failed. If it failed, callers get answers from what is known. */
  storeAnswered(isAnswered: boolean): void;
}
