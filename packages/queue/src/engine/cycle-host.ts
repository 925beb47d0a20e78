import type { DecideContext } from "../decide/deciding.ts";
import type { Note } from "../inputs.ts";
import type { HostCache, Touched } from "./host-cache.ts";

/** What a cycle needs from its host. */
export interface CycleHost {
  readonly key: string;
  readonly cache: HostCache;
  /** This instance has sessions at the host. */
  readonly hasPending: boolean;
  decideContext(): DecideContext;
  /** Records have changed. Updates the sessions of this instance. */
  changed(touched: Touched): void;
  note(note: Note): void;
  /** The outcomes of a decision were reported. Answers calls that waited for them. */
  answered(): void;
  /** The store has forgotten the host, or this instance no longer needs it. */
  drop(): void;
  /** The store answered or failed. If it failed, callers get answers from what is known. */
  storeAnswered(isAnswered: boolean): void;
}
