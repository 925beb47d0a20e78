import type { EngineContext } from "./context.ts";
import { Host, type HostListener, type HostOwner } from "./host.ts";

/** How many books of hosts without sessions stay cached. Beyond that, the least recently used one is dropped first. */
const MAX_IDLE_BOOKS = 10_000;

/**
 * The hosts of this instance. A host is dropped after an idle period without sessions. If more than `MAX_IDLE_BOOKS`
 * hosts are idle, the least recently used one is dropped earlier.
 * A store in the same process reads records from the books. There, a book is kept as long as the store has the host.
 */
export class Hosts implements HostOwner {
  readonly engine: EngineContext;
  readonly listener: HostListener;
  readonly #hosts = new Map<string, Host>();
  /** Hosts without sessions, least recently used first. */
  readonly #idle = new Set<Host>();

  constructor(engine: EngineContext, listener: HostListener) {
    this.engine = engine;
    this.listener = listener;
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
    this.onUsed(host);
    return host;
  }

  onUsed(host: Host): void {
    if (this.engine.store.clock !== "shared") return;
    this.#idle.delete(host);
    if (host.isRemembered) return;
    this.#idle.add(host);
    if (this.#idle.size > MAX_IDLE_BOOKS) this.#evict();
  }

  onDropped(host: Host): void {
    this.#idle.delete(host);
    this.#hosts.delete(host.key);
  }

  /** Inputs that the store does not have yet. */
  get unsent(): number {
    let unsent = 0;
    for (const { cycle } of this.#hosts.values()) unsent += cycle.unsent;
    return unsent;
  }

  /**
   * Applies new settings. The limits reach the store with the next decision of each host, which also restarts the
   * spacing of its releases.
   */
  configure(): void {
    for (const host of this.#hosts.values()) {
      host.configure();
      host.send({ kind: "unspace" });
    }
  }

  /** Skips hosts with a call in progress: they are few. */
  #evict(): void {
    for (const host of this.#idle) if (host.evict()) return;
  }
}
