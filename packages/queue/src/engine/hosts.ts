import type { EngineContext } from "./context.ts";
import { Host } from "./host.ts";
import type { Sessions } from "./sessions.ts";

/** How many books of hosts without sessions stay cached. Beyond that, the least recently used one is dropped first. */
const MAX_IDLE_BOOKS = 10_000;

/** How many hosts decide in one turn of the event loop when all have to. A decision takes some ten microseconds. */
const HOSTS_PER_TURN = 100;

/**
 * The hosts of this instance. A host is dropped after an idle period without sessions. If more than `MAX_IDLE_BOOKS`
 * hosts are idle, the least recently used one is dropped earlier.
 * A store in the same process reads records from the books. There, a book is kept as long as the store has the host.
 */
export class Hosts {
  readonly engine: EngineContext;
  readonly sessions: Sessions;
  readonly #hosts = new Map<string, Host>();
  /** Hosts without sessions, least recently used first. */
  readonly #idle = new Set<Host>();
  /** Hosts for which sessions of this instance wait. */
  readonly #waiting = new Set<Host>();

  constructor(engine: EngineContext, sessions: Sessions) {
    this.engine = engine;
    this.sessions = sessions;
  }

  get size(): number {
    return this.#hosts.size;
  }

  keys(): Iterable<string> {
    return this.#hosts.keys();
  }

  values(): Iterable<Host> {
    return this.#hosts.values();
  }

  find(key: string): Host | undefined {
    return this.#hosts.get(key);
  }

  open({ host: key, hostname }: { readonly host: string; readonly hostname?: string | undefined }): Host {
    let host = this.#hosts.get(key);
    if (host === undefined) {
      host = new Host(key, hostname, this);
      this.#hosts.set(key, host);
      host.cycle.schedule();
    } else host.learnName(hostname);
    if (!host.hasPending) this.#use(host);
    return host;
  }

  /** The first session waits there. */
  onWaiting(host: Host): void {
    this.#waiting.add(host);
    this.#idle.delete(host);
  }

  /** No session waits there any more. */
  onRest(host: Host): void {
    this.#waiting.delete(host);
    this.#use(host);
  }

  /** The host has no sessions, and was used just now. */
  #use(host: Host): void {
    if (!this.engine.store.isShared) return;
    this.#idle.delete(host);
    this.#idle.add(host);
    if (this.#idle.size > MAX_IDLE_BOOKS) this.#evict();
  }

  /** The hosts for which sessions of this instance wait. */
  get waiting(): Iterable<Host> {
    return this.#waiting;
  }

  onDropped(host: Host): void {
    this.#idle.delete(host);
    this.#waiting.delete(host);
    this.#hosts.delete(host.key);
  }

  /**
   * Applies new settings. The limits reach the store with the next decision of each host, which also restarts the
   * spacing of its releases.
   */
  configure(): void {
    this.inTurns((host) => host.send({ kind: "unspace" }));
  }

  /**
   * Does something for every host that is known now, first for those with waiting sessions: for the first ones
   * immediately, for the others after the current work, `HOSTS_PER_TURN` at a time, so that other work goes on in between.
   */
  inTurns(work: (host: Host) => void): void {
    const hosts = [...this.#waiting];
    for (const host of this.#hosts.values()) if (!host.hasPending) hosts.push(host);
    let at = 0;
    const turn = () => {
      for (const end = Math.min(hosts.length, at + HOSTS_PER_TURN); at < end; at++) {
        const host = hosts[at] as Host;
        if (this.#hosts.get(host.key) === host) work(host);
      }
      if (at < hosts.length) this.engine.soon(turn);
    };
    turn();
  }

  /** Skips hosts with a call in progress: they are few. */
  #evict(): void {
    for (const host of this.#idle) if (host.evict()) return;
  }
}
