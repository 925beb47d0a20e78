import type { Due } from "slotkeeper/parts";
import type { InstanceAbout } from "../store/host-store.ts";
import type { EngineContext } from "./context.ts";
import type { Host } from "./host.ts";
import type { Hosts } from "./hosts.ts";

/**
 * How often an instance sends a beat, and how long a beat is valid: while sessions wait there (`BUSY`), and otherwise
 * (`IDLE`). A beat is always valid until after the next one: otherwise others would drop the waiters that come meanwhile.
 */
const BUSY = { everyMs: 1_000, ttlMs: 3_500 };
const IDLE = { everyMs: 10_000, ttlMs: 30_000 };
/** An instance whose own beat took longer than this cannot conclude that others are late. */
const IN_TIME_MS = 2 * BUSY.everyMs;

/**
 * Each beat reports that this instance is alive. The reply has the store's clock, the live instances, and the hosts
 * that others have changed.
 * It is the fallback for notices: a lost notice delays a change by at most `BUSY.everyMs`. Beats are kept per instance,
 * so they cause no conflicts.
 * The waiters of a dead instance are dropped within 5 s: `BUSY.ttlMs` plus one beat. An instance that died before its
 * first quick beat counts as alive for longer, but not its waiters: with waiters it would have sent a quick beat.
 * If no instance could send a beat for a while, for example while the database was paused, the first one to do so must
 * not consider the others dead. Only an instance whose previous beat was in time does that.
 */
export class Heartbeat implements Due {
  readonly #engine: EngineContext;
  readonly #hosts: Hosts;
  readonly #about: () => InstanceAbout;
  /** Since when other instances have had waiters, as far as this instance has seen. */
  #waitsSince = new Map<string, number>();
  #isBeating = false;
  #answeredAt = Number.NEGATIVE_INFINITY;
  #isBusy = false;
  /** When the next beat must be sent, whether or not sessions wait. */
  #nextBy = Number.NEGATIVE_INFINITY;
  #isClosed = false;
  dueAt = 0;
  agendaAt = -1;

  constructor(hosts: Hosts, about: () => InstanceAbout) {
    this.#engine = hosts.engine;
    this.#hosts = hosts;
    this.#about = about;
    this.#next();
  }

  /** Sessions wait, so the instance sends beats more often. */
  quicken(): void {
    if (this.#isClosed || this.#isBusy) return;
    this.#isBusy = true;
    this.#next();
  }

  /** Sends a beat now. At the start, this loads the fleet and the store's clock. */
  async beat(): Promise<void> {
    if (this.#isBeating || this.#isClosed) return;
    this.#isBeating = true;
    const { store, instance, time } = this.#engine;
    const waiting = this.#waiting();
    this.#isBusy = waiting.length > 0;
    const { everyMs, ttlMs } = this.#isBusy ? BUSY : IDLE;
    this.#nextBy = time.now() + everyMs;
    this.#next();
    try {
      const hosts = waiting.map(({ key, cache }) => [key, cache.tag] as const);
      const { now, instances, changed } = await store.beat({ instance, ttlMs, about: this.#about(), hosts });
      time.learn(now);
      const isInTime = time.now() - this.#answeredAt <= IN_TIME_MS;
      this.#answeredAt = time.now();
      this.#engine.fleet = new Map(instances.map((view) => [view.instance, now - view.seenAgoMs]));
      if (isInTime) this.#bury(now);
      for (const key of changed) this.#hosts.find(key)?.cycle.refresh();
    } catch (error) {
      this.#engine.emit({ type: "store-error", host: undefined, operation: "beat", error });
    }
    this.#isBeating = false;
  }

  due(): void {
    const isNeeded = this.#engine.store.isShared && this.#engine.time.now() >= this.#nextBy;
    if (this.#waiting().length > 0 || isNeeded) {
      // A beat is still in progress. No second one is sent, but the next one is scheduled.
      if (this.#isBeating) this.#engine.agenda.schedule(this, this.#engine.time.now() + BUSY.everyMs);
      else void this.beat();
      return;
    }
    this.#isBusy = false;
    this.#next();
  }

  /** Reports that this instance stops, so that the fleet does not wait until its last beat expires. */
  async leave(): Promise<void> {
    this.#isClosed = true;
    this.#engine.agenda.cancel(this);
    const { store, instance } = this.#engine;
    await store.beat({ instance, ttlMs: 0, about: this.#about(), hosts: [] });
  }

  close(): void {
    this.#isClosed = true;
    this.#engine.agenda.cancel(this);
  }

  /** The time may have gone back (CLOCK2): then the next beat was scheduled too far ahead. */
  followTime(): void {
    const now = this.#engine.time.now();
    const { everyMs } = this.#isBusy ? BUSY : IDLE;
    if (this.#isClosed || this.dueAt <= now + everyMs) return;
    this.#nextBy = Math.min(now + everyMs, this.#nextBy);
    this.#next();
  }

  /** A store that ends with this process needs no beats while no session waits. */
  #next(): void {
    const { agenda, time, store } = this.#engine;
    if (this.#isBusy) agenda.schedule(this, time.now() + BUSY.everyMs);
    else if (store.isShared) agenda.schedule(this, Math.max(time.now(), this.#nextBy));
  }

  #waiting(): Host[] {
    return [...this.#hosts.waiting];
  }

  /** Drops the waiters of dead instances at every host that is cached here. */
  #bury(now: number): void {
    const waitsSince = new Map<string, number>();
    for (const host of this.#hosts.values()) {
      for (const instance of host.book.index.instances) {
        if (instance === this.#engine.instance) continue;
        waitsSince.set(instance, this.#waitsSince.get(instance) ?? now);
        if (this.#isGone(instance, now)) host.send({ kind: "dead", instance });
      }
    }
    this.#waitsSince = waitsSince;
  }

  #isGone(instance: string, now: number): boolean {
    const seenAt = this.#engine.seenAt(instance);
    const waitsSince = this.#waitsSince.get(instance) ?? now;
    return seenAt === undefined || now - Math.max(seenAt, waitsSince) > BUSY.ttlMs;
  }
}
