import type { FairQueueConfig } from "@slotkeeper/protocol";
import type { Clock } from "slotkeeper";
import { Agenda } from "slotkeeper/parts";
import { MOST_ENDS } from "../book/session-ends.ts";
import { type QueueOptions, resolveOptions } from "../options.ts";
import type { HostStore, InstanceAbout } from "../store/host-store.ts";
import { Calls } from "./calls.ts";
import type { EngineContext } from "./context.ts";
import { count, newCounts, type QueueCounts, type QueueEvent } from "./events.ts";
import { Heartbeat } from "./heartbeat.ts";
import { Hosts } from "./hosts.ts";
import { Releases } from "./releases.ts";
import { Sessions } from "./sessions.ts";
import { StoreTime } from "./store-time.ts";

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

/** Creates and connects the parts of one instance. `FairQueue` is their public interface. */
export class Engine {
  readonly counts: QueueCounts = newCounts();
  readonly options: LiveOptions;
  readonly context: EngineContext;
  readonly sessions: Sessions;
  readonly hosts: Hosts;
  readonly heartbeat: Heartbeat;
  readonly calls: Calls;
  readonly releases: Releases;
  readonly #observe: (event: QueueEvent) => void;
  readonly #stopWatching: () => void;

  constructor(init: FairQueueInit) {
    const { store, clock, instance, newSecret } = init;
    const time = new StoreTime(clock, store.isShared, () => this.#followTime());
    this.options = new LiveOptions(init.config, time);
    this.#observe = init.observe ?? (() => {});
    this.context = {
      store,
      time,
      newSecret,
      instance,
      mostEnds: init.mostEnds ?? MOST_ENDS,
      agenda: new Agenda(time),
      unsent: { count: 0 },
      options: () => this.options.current,
      loadedAt: () => this.options.loadedAt,
      emit: (event) => this.#emit(event),
      soon: init.soon ?? ((task) => void Promise.resolve().then(task)),
      seenAt: (other) => this.heartbeat.seenAt(other),
      isAlone: () => this.heartbeat.isAlone,
    };
    this.sessions = new Sessions(this.context);
    this.hosts = new Hosts(this.context, this.sessions);
    this.heartbeat = new Heartbeat(this.context, this.hosts, init.about ?? (() => ({})));
    this.calls = new Calls(this.context, this, init.newSessionId, () => this.heartbeat.quicken());
    this.releases = new Releases(this.context, this.hosts);
    this.#stopWatching = store.watch(instance, (notice) => this.hosts.find(notice.host)?.receive(notice));
  }

  /** Answers every held poll and stops. */
  close(): void {
    this.#stopWatching();
    this.heartbeat.close();
    this.sessions.close();
    this.context.agenda.close();
  }

  /** The store has set the time: what is scheduled in it must not come late. */
  #followTime(): void {
    this.heartbeat.followTime();
    this.context.agenda.followTime();
  }

  #emit(event: QueueEvent): void {
    count(this.counts, event);
    try {
      this.#observe(event);
    } catch (error) {
      // An error in the listener is reported as an unhandled rejection. It does not affect the queue.
      void Promise.reject(error);
    }
  }
}

/**
 * The settings of this instance, and when they were loaded. For each host, the settings that an instance of the fleet
 * loaded last are in force.
 */
class LiveOptions {
  readonly #time: StoreTime;
  #current: QueueOptions;
  #loadedAt: number;

  constructor(config: FairQueueConfig | undefined, time: StoreTime) {
    this.#time = time;
    this.#current = resolveOptions(config);
    this.#loadedAt = time.now();
  }

  get current(): QueueOptions {
    return this.#current;
  }

  /** Store time. */
  get loadedAt(): number {
    return this.#loadedAt;
  }

  load(config: FairQueueConfig): void {
    this.#current = resolveOptions(config);
    // Always later than the last load, even within one tick of the clock.
    this.#loadedAt = Math.max(this.#time.now(), this.#loadedAt + 1 / 1024);
  }

  /** The store's clock is known now. The settings get the current store time as their load time. */
  restamp(): void {
    this.#loadedAt = this.#time.now();
  }
}
