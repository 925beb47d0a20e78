import type { Agenda } from "slotkeeper/parts";
import type { DecideContext } from "../decide/deciding.ts";
import type { Note } from "../inputs.ts";
import type { QueueOptions } from "../options.ts";
import type { HostStore } from "../store/host-store.ts";
import type { QueueEvent } from "./events.ts";
import type { HostCache, Touched } from "./host-cache.ts";
import type { StoreTime } from "./store-time.ts";

/** What the parts of one engine share. */
export interface EngineContext {
  readonly store: HostStore;
  /** Store time. All instants in the engine use it. */
  readonly time: StoreTime;
  /** The name of this instance, unique in the fleet. */
  readonly instance: string;
  /** At least 128 random bits, for slot tokens and tags. */
  readonly newSecret: () => string;
  readonly agenda: Agenda;
  /** Inputs that the store does not have yet, of all hosts. */
  readonly unsent: { count: number };
  /** The current options. They can change while the service runs. */
  readonly options: () => QueueOptions;
  /** How many ends of sessions a host keeps. */
  readonly mostEnds: number;
  /** When the options were loaded. */
  readonly loadedAt: () => number;
  readonly emit: (event: QueueEvent) => void;
  /** Runs the task after the current work. */
  readonly soon: (task: () => void) => void;
  /** When an instance last sent a beat or a commit; undefined: not known. */
  readonly seenAt: (instance: string) => number | undefined;
  /** No other instance is alive, by the last beat. */
  readonly isAlone: () => boolean;
}

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
