import type { EngineContext } from "./context.ts";
import { Host, type HostListener } from "./host.ts";

/** The hosts of this instance. One that no session has used for an idle period is dropped. */
export class Hosts {
  readonly #engine: EngineContext;
  readonly #listener: HostListener;
  readonly #hosts = new Map<string, Host>();

  constructor(engine: EngineContext, listener: HostListener) {
    this.#engine = engine;
    this.#listener = listener;
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
      host = new Host(key, hostname, {
        engine: this.#engine,
        listener: this.#listener,
        onDrop: (dropped) => this.#hosts.delete(dropped.key),
      });
      this.#hosts.set(key, host);
      host.cycle.schedule();
    } else host.learnName(hostname);
    return host;
  }

  /** Calls the store does not have yet. */
  get unsent(): number {
    let unsent = 0;
    for (const { cycle } of this.#hosts.values()) unsent += cycle.unsent;
    return unsent;
  }

  /** New settings: limits reach the store with the next decision of each host, which spaces its releases afresh. */
  configure(): void {
    for (const host of this.#hosts.values()) {
      host.configure();
      host.send({ kind: "unspace" });
    }
  }
}
