import { hostOfToken } from "../slot-token.ts";
import type { EngineContext } from "./context.ts";
import type { Hosts } from "./hosts.ts";
import type { Sessions } from "./sessions.ts";

/** What a caller says when it gives a slot back. */
export interface ReleaseInput {
  readonly slotToken: string;
  /** When the upstream was hit, by the caller's clock. */
  readonly hitUpstreamAtMs?: number | undefined;
  /** The caller's clock now: with it a wrong clock does no harm. */
  readonly callerNow?: number | undefined;
  /** The upstream's answer, for the breaker. */
  readonly status?: number | undefined;
}

/** The answer to a renewal that succeeded: how long the slot may be held from now on. */
export interface RenewReply {
  readonly leaseMs: number;
}

/** What holders of slots ask. Their token names the host: nothing else is needed, and no host is created for it. */
export class Releases {
  readonly #engine: EngineContext;
  readonly #sessions: Sessions;
  readonly #hosts: Hosts;

  constructor(engine: EngineContext, sessions: Sessions, hosts: Hosts) {
    this.#engine = engine;
    this.#sessions = sessions;
    this.#hosts = hosts;
  }

  /**
   * Returns at once: the host's cycle takes it to the store, whatever becomes of the caller. `onSafe`: when the end of this process
   * cannot lose it any more. A store that ends with the process has nothing to wait for.
   */
  release(input: ReleaseInput, onSafe?: () => void): void {
    const { slotToken, status } = input;
    const key = hostOfToken(slotToken);
    const { emit, time } = this.#engine;
    if (key === undefined) {
      emit({ type: "late-release", host: undefined });
      onSafe?.();
      return;
    }
    const session = this.#sessions.register.findToken(slotToken);
    if (session !== undefined) this.#sessions.transitions.setLease(session, 0);
    const isShared = this.#engine.store.clock === "shared";
    if (!isShared) onSafe?.();
    const host = this.#hosts.open({ host: key });
    host.send({ kind: "release", slotToken, hitAt: this.#hitAt(input), status }, (outcome) => {
      if (isShared) onSafe?.();
      if (outcome.kind !== "released") {
        emit({ type: "late-release", host: key });
        return;
      }
      const { bucket, endsAt, heldMs } = outcome;
      if (session !== undefined) this.#sessions.transitions.forget(session);
      emit({ type: "released", host: key, bucket, endsInMs: Math.max(0, endsAt - time.now()), heldMs });
    });
  }

  /** Undefined: the lease is lost. */
  renew(slotToken: string): Promise<RenewReply | undefined> {
    const key = hostOfToken(slotToken);
    if (key === undefined) return Promise.resolve(undefined);
    const { time } = this.#engine;
    return new Promise((resolve) => {
      this.#hosts.open({ host: key }).send({ kind: "renew", slotToken }, (outcome) => {
        const endsAt = outcome.kind === "renewed" ? outcome.endsAt : 0;
        const session = this.#sessions.register.findToken(slotToken);
        if (session !== undefined) this.#sessions.transitions.setLease(session, endsAt);
        const leaseMs = endsAt - time.now();
        resolve(leaseMs > 0 ? { leaseMs } : undefined);
      });
    });
  }

  /** In store time: with the caller's own `now` a wrong clock does no harm. */
  #hitAt({ hitUpstreamAtMs, callerNow }: ReleaseInput): number | undefined {
    if (hitUpstreamAtMs === undefined) return undefined;
    const now = this.#engine.time.now();
    return now - ((callerNow ?? now) - hitUpstreamAtMs);
  }
}
