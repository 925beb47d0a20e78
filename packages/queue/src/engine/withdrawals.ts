import type { SessionEnd, WithdrawBatch } from "../store/slot-store.ts";
import type { EngineContext } from "./context.ts";
import type { HostQueue } from "./host-queue.ts";
import type { Session } from "./session.ts";

/** Tells the store of sessions that ended here: all of a host's that end in one turn in one call. */
export class Withdrawals {
  readonly #engine: EngineContext;
  readonly #waiting = new Map<HostQueue, WithdrawBatch["sessions"][number][]>();

  constructor(engine: EngineContext) {
    this.#engine = engine;
  }

  add({ host, claims }: Pick<Session, "host" | "claims">, end: SessionEnd): void {
    const ended = { session: claims.id, end, ttlMs: Math.max(0, claims.deadlineAt - this.#engine.clock.now()) };
    const batch = this.#waiting.get(host);
    if (batch !== undefined) {
      batch.push(ended);
      return;
    }
    this.#waiting.set(host, [ended]);
    void Promise.resolve().then(() => this.#flush(host));
  }

  #flush(host: HostQueue): void {
    const sessions = this.#waiting.get(host) ?? [];
    this.#waiting.delete(host);
    const { store, instance, outbox, clock } = this.#engine;
    outbox.post({
      operation: "withdraw",
      host: host.key,
      giveUpAt: clock.now() + host.policy.leaseMs,
      send: () => store.withdraw({ host: host.key, instance, policy: host.policy, sessions }),
      done: () => {
        // Their places are free now, and were not before.
        host.offers++;
        this.#engine.wake(host);
      },
    });
  }
}
