import type { Due } from "../agenda.ts";
import type { InstanceAbout } from "../store/host-store.ts";
import type { EngineContext } from "./context.ts";
import type { Host } from "./host.ts";
import type { Hosts } from "./hosts.ts";

/** How often an instance says that it lives, and how long that is believed: while sessions wait there, and else. */
const BUSY = { everyMs: 1_000, ttlMs: 3_500 };
const IDLE = { everyMs: 10_000, ttlMs: 30_000 };
/** An instance whose own beat took longer than this to come round cannot say that others are late. */
const IN_TIME_MS = 2 * BUSY.everyMs;

/**
 * One call that reports that this instance is alive, and returns the store's clock, which instances are gone, and which hosts others
 * have changed. It is the fallback of every push: a lost one costs at most `BUSY.everyMs`. Whether an instance lives is kept
 * per instance, so that beats cause no conflicts. A dead instance's waiters are dropped within 5 s: `BUSY.ttlMs` and a beat. One
 * that died before its first quick beat is believed for longer, but not to have waiters: with those it would have sent one.
 * After a time in which no instance could beat, as while the database stood still, the first to beat does not take the others for dead:
 * only an instance whose previous beat was in time does.
 */
export class Heartbeat implements Due {
  readonly #engine: EngineContext;
  readonly #hosts: Hosts;
  readonly #about: () => InstanceAbout;
  #seenAt = new Map<string, number>();
  /** Since when other instances have had waiters, as far as this one has seen. */
  #waitsSince = new Map<string, number>();
  #isBeating = false;
  #beatAt = Number.NEGATIVE_INFINITY;
  #answeredAt = Number.NEGATIVE_INFINITY;
  #isBusy = false;
  #isClosed = false;
  dueAt = 0;
  agendaIndex = -1;

  constructor(engine: EngineContext, hosts: Hosts, about: () => InstanceAbout) {
    this.#engine = engine;
    this.#hosts = hosts;
    this.#about = about;
    this.#next();
  }

  seenAt(instance: string): number | undefined {
    return this.#seenAt.get(instance);
  }

  /** Sessions wait: from now on the beat is quick. */
  quicken(): void {
    if (this.#isBusy || this.#isClosed) return;
    this.#isBusy = true;
    this.#next();
  }

  /** At once: at the start, so that the fleet and the store's clock are known. */
  async beat(): Promise<void> {
    if (this.#isBeating || this.#isClosed) return;
    this.#isBeating = true;
    this.#beatAt = this.#engine.time.now();
    const { store, instance, time } = this.#engine;
    const waiting = this.#waiting();
    this.#isBusy = waiting.length > 0;
    const { ttlMs } = this.#isBusy ? BUSY : IDLE;
    this.#next();
    try {
      const hosts = waiting.map(({ key, cache }) => [key, cache.tag] as const);
      const { now, instances, changed } = await store.beat({ instance, ttlMs, about: this.#about(), hosts });
      time.learn(now);
      const isInTime = time.now() - this.#answeredAt <= IN_TIME_MS;
      this.#answeredAt = time.now();
      this.#seenAt = new Map(instances.map((view) => [view.instance, now - view.seenAgoMs]));
      if (isInTime) this.#bury(now);
      for (const key of changed) this.#hosts.find(key)?.cycle.refresh();
    } catch (error) {
      this.#engine.emit({ type: "store-error", host: undefined, operation: "beat", error });
    }
    this.#isBeating = false;
  }

  onDue(): void {
    const isFresh = this.#engine.time.now() < this.#beatAt + IDLE.everyMs;
    const { clock } = this.#engine.store;
    if (this.#waiting().length > 0 || (clock === "shared" && !isFresh)) {
      // One that is still under way is not doubled; the next is set all the same.
      if (this.#isBeating) this.#engine.agenda.schedule(this, this.#engine.time.now() + BUSY.everyMs);
      else void this.beat();
      return;
    }
    this.#isBusy = false;
    this.#next();
  }

  /** The fleet need not wait for the last beat to run out. */
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

  /** A store that ends with this process needs no beat while no session waits. */
  #next(): void {
    const { agenda, time, store } = this.#engine;
    if (this.#isBusy) agenda.schedule(this, time.now() + BUSY.everyMs);
    else if (store.clock === "shared") agenda.schedule(this, Math.max(time.now(), this.#beatAt + IDLE.everyMs));
  }

  #waiting(): Host[] {
    return [...this.#hosts.values()].filter(({ hasPending }) => hasPending);
  }

  /** Waiters of instances that are gone, at every host that is cached here. */
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
    const seenAt = this.#seenAt.get(instance);
    const waitsSince = this.#waitsSince.get(instance) ?? now;
    return seenAt === undefined || now - Math.max(seenAt, waitsSince) > BUSY.ttlMs;
  }
}
