import type { Costs } from "@slotkeeper/protocol";
import { hostOfToken } from "../book/leases.ts";
import type { EngineContext } from "./context.ts";
import type { Host } from "./host.ts";
import type { Hosts } from "./hosts.ts";

/** What a caller sends when it releases a slot. */
export interface ReleaseInput {
  readonly slotToken: string;
  /** When the request reached the upstream, by the caller's clock. */
  readonly hitUpstreamAtMs?: number | undefined;
  /** The current time of the caller's clock. With it, a wrong clock does no harm. */
  readonly callerNow?: number | undefined;
  /** The upstream's answer, for the breaker. */
  readonly status?: number | undefined;
  /** What the request really cost, by the name of the budget. Others keep their charge. */
  readonly used?: Costs | undefined;
}

/** What is known of a release when its caller gets an answer. */
export interface ReleaseAccepted {
  /** Whether the token held a slot. Undefined: a shared store knows that. */
  readonly isHeld: boolean | undefined;
  /** The names in `used` that are not charged budgets of the slot, or have no possible amount. Their charges are kept. */
  readonly ignored: readonly string[];
}

/** The answer to a successful renewal: how long the slot may be held from now on. */
export interface RenewReply {
  readonly leaseMs: number;
}

/** The calls of clients that hold slots. The token contains the host, so the calls need nothing else and create no host. */
export class Releases {
  readonly #engine: EngineContext;
  readonly #hosts: Hosts;

  constructor(hosts: Hosts) {
    this.#engine = hosts.engine;
    this.#hosts = hosts;
  }

  /**
   * Returns immediately. The cycle of the host sends the release to the store, even if the caller leaves. `onAccepted`
   * runs when the caller need not repeat the release: immediately, unless another instance is alive. Then it runs when
   * the store has the release, because a caller without an answer can repeat the call at that instance. It also waits
   * for a store of this process if the book of the host is not loaded, and for every store if `used` must be checked.
   */
  release(input: ReleaseInput, onAccepted?: (accepted: ReleaseAccepted) => void): void {
    const { slotToken, status, used } = input;
    const key = hostOfToken(slotToken);
    if (key === undefined) {
      this.#engine.emit({ type: "late-release", host: undefined });
      onAccepted?.({ isHeld: false, ignored: [] });
      return;
    }
    const { isAlone, store, time } = this.#engine;
    const { isShared } = store;
    const host = this.#hosts.open({ host: key });
    const isHeld = isShared ? undefined : this.#isHeld(host, slotToken);
    const isAwaited = used !== undefined || (isShared ? !isAlone : isHeld === undefined);
    if (!isAwaited) onAccepted?.({ isHeld, ignored: [] });
    host.send({ kind: "release", slotToken, hitAt: this.#hitAt(input), status, used }, (outcome) => {
      const isReleased = outcome.kind === "released";
      if (isAwaited)
        onAccepted?.({
          isHeld: isShared ? undefined : isReleased,
          ignored: isReleased ? (outcome.ignored ?? []) : [],
        });
      if (!isReleased) {
        this.#engine.emit({ type: "late-release", host: key });
        return;
      }
      const { bucket, endsAt, heldMs } = outcome;
      this.#engine.emit({ type: "released", host: key, bucket, endsInMs: Math.max(0, endsAt - time.now()), heldMs });
    });
  }

  /** Undefined: the lease has ended. */
  renew(slotToken: string): Promise<RenewReply | undefined> {
    const key = hostOfToken(slotToken);
    if (key === undefined) return Promise.resolve(undefined);
    const { time } = this.#engine;
    return new Promise((resolve) => {
      this.#hosts.open({ host: key }).send({ kind: "renew", slotToken }, (outcome) => {
        const endsAt = outcome.kind === "renewed" ? outcome.endsAt : 0;
        const leaseMs = endsAt - time.now();
        resolve(leaseMs > 0 ? { leaseMs } : undefined);
      });
    });
  }

  /** Undefined: the book is not loaded. */
  #isHeld({ book }: Host, slotToken: string): boolean | undefined {
    if (book.tag === undefined) return undefined;
    const lease = book.get("lease", slotToken);
    return lease !== undefined && !lease.isReleased && lease.endsAt > this.#engine.time.now();
  }

  /** Converts the time of the hit to store time, with the caller's own `now` to correct a wrong clock. */
  #hitAt({ hitUpstreamAtMs, callerNow }: ReleaseInput): number | undefined {
    if (hitUpstreamAtMs === undefined) return undefined;
    const now = this.#engine.time.now();
    return now - ((callerNow ?? now) - hitUpstreamAtMs);
  }
}
