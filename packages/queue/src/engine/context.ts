import type { FairQueueConfig } from "@slotkeeper/protocol";
import type { Clock } from "slotkeeper";
import { Agenda } from "slotkeeper/parts";
import { MOST_ENDS } from "../book/standing.ts";
import { type QueueOptions, resolveOptions } from "../options.ts";
import type { HostStore, InstanceAbout } from "../store/host-store.ts";
import { count, newCounts, type QueueEvent } from "./events.ts";

/** What a `FairQueue` needs. The engine has no I/O, clock or randomness of its own. */
export interface FairQueueInit {
  /** Keeps the state of the hosts. */
  readonly store: HostStore;
  /** The clock of this process. A shared store has its own; the engine follows that one. */
  readonly clock: Clock;
  /** Creates ids for sessions, unguessable and unique. */
  readonly newSessionId: () => string;
  /** At least 128 random bits without a dot: for slot tokens, and for the tags of commits. */
  readonly newSecret: () => string;
  /** The name of this instance, unique in the fleet and different after every start. */
  readonly instance: string;
  /** The section `fairQueue` of the configuration. Default: every setting at its default. */
  readonly config?: FairQueueConfig;
  /** Information about this instance that each beat reports. */
  readonly about?: () => InstanceAbout;
  /**
   * Runs a task after the current work; by default after the current turn. If many callers arrive in one turn of the
   * event loop, let it run after that turn: then their requests are decided together.
   */
  readonly soon?: (task: () => void) => void;
  /** How many ends of sessions a host keeps. The default is for services; tests and the simulator use few. */
  readonly mostEnds?: number;
  /** Called for every event, synchronously. */
  readonly observe?: (event: QueueEvent) => void;
}

/** What the parts of one engine share. */
export class EngineContext {
  readonly store: HostStore;
  /** Store time. All instants in the engine use it. */
  readonly time: StoreTime;
  readonly instance: string;
  readonly newSessionId: () => string;
  readonly newSecret: () => string;
  readonly mostEnds: number;
  readonly soon: (task: () => void) => void;
  readonly agenda: Agenda;
  readonly counts = newCounts();
  /** Inputs that the store does not have yet, of all hosts. */
  unsent = 0;
  /** The live instances, and when each last sent a beat, by the last beat of this one. */
  fleet: ReadonlyMap<string, number> = new Map();
  readonly seenAt = (instance: string): number | undefined => this.fleet.get(instance);
  readonly #observe: ((event: QueueEvent) => void) | undefined;
  #options: QueueOptions;
  #loadedAt: number;

  /** `onTimeSet`: the store has set the time, which may have gone back (CLOCK2). */
  constructor(init: FairQueueInit, onTimeSet: () => void) {
    this.store = init.store;
    this.time = new StoreTime(init.clock, init.store.isShared, onTimeSet);
    this.instance = init.instance;
    this.newSessionId = init.newSessionId;
    this.newSecret = init.newSecret;
    this.mostEnds = init.mostEnds ?? MOST_ENDS;
    this.soon = init.soon ?? ((task) => void Promise.resolve().then(task));
    this.agenda = new Agenda(this.time);
    this.#observe = init.observe;
    this.#options = resolveOptions(init.config);
    this.#loadedAt = this.time.now();
  }

  /** The settings of this instance. They can change while the service runs. */
  get options(): QueueOptions {
    return this.#options;
  }

  /** When they were loaded: for each host, those that an instance of the fleet loaded last are in force. */
  get loadedAt(): number {
    return this.#loadedAt;
  }

  load(config: FairQueueConfig): void {
    this.#options = resolveOptions(config);
    // Always later than the last load, even within one tick of the clock.
    this.#loadedAt = Math.max(this.time.now(), this.#loadedAt + 1 / 1024);
  }

  /** The store's clock is known now. The settings get the current store time as their load time. */
  restamp(): void {
    this.#loadedAt = this.time.now();
  }

  /** No other instance is alive, by the last beat. */
  get isAlone(): boolean {
    return this.fleet.size === (this.fleet.has(this.instance) ? 1 : 0);
  }

  emit(event: QueueEvent): void {
    count(this.counts, event);
    try {
      this.#observe?.(event);
    } catch (error) {
      // An error in the listener is reported as an unhandled rejection. It does not affect the queue.
      void Promise.reject(error);
    }
  }
}

/**
 * The store's time, as far as this instance knows it. The engine uses it everywhere, so that arrivals, deadlines and
 * leases mean the same at every instance, even if its own clock is wrong.
 *
 * CLOCK1 It is never ahead of the store's clock, as far as answers show: the `now` of an answer is already in the past
 *   when it arrives.
 * CLOCK2 It never goes back, with two exceptions: the first answer of the store, before which nothing is known, and a
 *   commit that the store refused because of its time.
 * If the store uses the clock of this process, both are the same.
 */
export class StoreTime implements Clock {
  readonly #clock: Clock;
  readonly #isShared: boolean;
  readonly #onSet: () => void;
  #offsetMs = 0;
  #isKnown = false;
  #last = Number.NEGATIVE_INFINITY;

  /** `onSet`: the time was set, and may have gone back (CLOCK2). */
  constructor(clock: Clock, isShared: boolean, onSet: () => void) {
    this.#clock = clock;
    this.#isShared = isShared;
    this.#onSet = onSet;
  }

  /** How far the store's clock is ahead of this instance's. */
  get skewMs(): number {
    return this.#offsetMs;
  }

  now(): number {
    this.#last = Math.max(this.#last, this.#clock.now() + this.#offsetMs);
    return this.#last;
  }

  setTimer(callback: () => void, delayMs: number): unknown {
    return this.#clock.setTimer(callback, delayMs);
  }

  clearTimer(timer: unknown): void {
    this.#clock.clearTimer(timer);
  }

  /** An answer of the store has just arrived. `isRefused`: the store refused a commit because of its time. */
  learn(storeNow: number, isRefused = false): void {
    if (!this.#isShared) return;
    const offsetMs = storeNow - this.#clock.now();
    const isSet = !this.#isKnown || isRefused;
    this.#isKnown = true;
    if (isSet) {
      this.#offsetMs = offsetMs;
      this.#last = storeNow;
      this.#onSet();
    } else if (offsetMs > this.#offsetMs) this.#offsetMs = offsetMs;
    // The fastest answer is the most exact. Slower ones only correct for drift.
    else this.#offsetMs += DRIFT_SHARE * (offsetMs - this.#offsetMs);
  }
}

const DRIFT_SHARE = 0.01;
