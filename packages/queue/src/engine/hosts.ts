import type { EngineContext } from "./context.ts";
import { Cycle } from "./cycle.ts";
import { HostQueue } from "./host-queue.ts";
import type { Sessions } from "./sessions.ts";

/** The hosts of this instance, each with its cycle. A host that nobody has used for an idle period is forgotten. */
export class Hosts {
  readonly #engine: EngineContext;
  readonly #sessions: Sessions;
  readonly #hosts = new Map<string, { readonly host: HostQueue; readonly cycle: Cycle }>();

  /** How often the store has said that a slot was freed. */
  freedTold = 0;

  constructor(engine: EngineContext, sessions: Sessions) {
    this.#engine = engine;
    this.#sessions = sessions;
  }

  get size(): number {
    return this.#hosts.size;
  }

  *values(): Iterable<HostQueue> {
    for (const { host } of this.#hosts.values()) yield host;
  }

  /** `limit`: what the caller of a named semaphore asks for; it counts while nobody else uses it. */
  hostOf({ host: key, hostname }: { host: string; hostname?: string | undefined }, limit?: number): HostQueue {
    const known = this.#hosts.get(key)?.host;
    if (known === undefined) return this.#add(new HostQueue(key, hostname, this.#engine.options(), limit));
    known.learnName(hostname, this.#engine.options());
    if (limit !== undefined && known.pending === 0 && known.capacity !== limit) {
      known.reconfigure(this.#engine.options(), limit);
    }
    return known;
  }

  wake(host: HostQueue): void {
    this.#hosts.get(host.key)?.cycle.wake();
  }

  /** The store says that trying again is worth it. */
  freed(key: string, bucket: string | undefined): void {
    this.freedTold++;
    const entry = this.#hosts.get(key);
    if (entry === undefined) return;
    entry.host.freed(bucket, this.#engine.clock.now());
    if (entry.host.pending > 0) entry.cycle.wake();
  }

  /** A slot was released here and ends then: the cycle runs at that moment, and its bucket is denied no longer. */
  endsIn(key: string, name: string, endsInMs: number): void {
    const entry = this.#hosts.get(key);
    if (entry === undefined) return;
    if (endsInMs <= 0) {
      this.freed(key, name);
      return;
    }
    const { host, cycle } = entry;
    const now = this.#engine.clock.now();
    const bucket = host.buckets.get(name);
    if (bucket !== undefined) host.denied.endBy(bucket, now + endsInMs);
    host.freeAt = Math.min(host.freeAt ?? Number.POSITIVE_INFINITY, now + endsInMs);
    cycle.reschedule();
  }

  reconfigure(): void {
    for (const { host, cycle } of this.#hosts.values()) {
      host.reconfigure(this.#engine.options());
      if (host.pending > 0) cycle.wake();
    }
  }

  #add(host: HostQueue): HostQueue {
    const cycle = new Cycle(host, this.#engine, this.#sessions, () => this.#hosts.delete(host.key));
    this.#hosts.set(host.key, { host, cycle });
    this.#engine.agenda.schedule(cycle, this.#engine.clock.now() + this.#engine.options().idleMs);
    return host;
  }
}
