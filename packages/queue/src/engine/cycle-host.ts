import type { DecideContext } from "../decide/deciding.ts";
import type { Note } from "../inputs.ts";
import type { HostCache, Touched } from "./host-cache.ts";

/** What a cycle needs of its host. */
export interface CycleHost {
  readonly key: string;
  readonly cache: HostCache;
  /** Sessions of this instance wait there. */
  readonly hasPending: boolean;
  /** This instance keeps sessions of it, ended ones too: it will not be dropped. */
  readonly isRemembered: boolean;
  decideContext(): DecideContext;
  /** Records have changed: sessions of this instance may have a verdict. */
  settle(touched: Touched): void;
  note(note: Note): void;
  /** The store has forgotten the host, or this instance need not keep it. */
  drop(): void;
  /** The store has answered, or has failed to: then callers are answered with what is known. */
  storeAnswered(isAnswered: boolean): void;
}
