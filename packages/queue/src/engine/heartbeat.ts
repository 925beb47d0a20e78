import type { Due } from "../agenda.ts";
import { batchOf } from "./batch.ts";
import type { EngineContext } from "./context.ts";
import type { HostQueue } from "./host-queue.ts";
import type { Hosts } from "./hosts.ts";
import { takeAccounts } from "./verdicts.ts";

/**
 * Says for every waiter that it lives, where the store could outlive this instance. The answer's verdicts are left
 * alone: it may be older than what the cycle has learnt since. Its accounts correct the copies the order is kept by.
 */
export class Heartbeat implements Due {
  readonly #engine: EngineContext;
  readonly #hosts: Hosts;
  dueAt = 0;
  agendaIndex = -1;

  constructor(engine: EngineContext, hosts: Hosts) {
    this.#engine = engine;
    this.#hosts = hosts;
  }

  /** Begins to beat, unless it does or need not. */
  start(): void {
    const { heartbeatMs } = this.#engine.store;
    if (heartbeatMs === undefined || this.agendaIndex !== -1) return;
    this.#engine.agenda.schedule(this, this.#engine.clock.now() + heartbeatMs);
  }

  onDue(): void {
    for (const host of this.#hosts.values()) {
      if (host.pending === 0) continue;
      this.start();
      void this.#beat(host);
    }
  }

  async #beat(host: HostQueue): Promise<void> {
    const inside = [...host.waiting].filter(({ place }) => place === "inside");
    if (inside.length === 0) return;
    const { calls } = host;
    try {
      const { accounts } = await this.#engine.store.register(batchOf(host, this.#engine, inside, false));
      if (host.calls === calls) takeAccounts(host, accounts, this.#engine.clock.now());
    } catch (error) {
      this.#engine.emit({ type: "store-error", host: host.key, operation: "register", error });
    }
  }
}
