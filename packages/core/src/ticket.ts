/**
 * A slot that is more than counting, from the moment it is asked for.
 *
 *   state     `at`     deadline      ends by
 *   waiting   a gate   its timeout   that gate grants it (→ held); its signal aborts; its time is up; the gate refuses it
 *   held      -        its ttl       its holder releases; its time is up
 *   ended     -        none          -
 *
 * A waiter for one plain slot with no signal and no timeout has none: its promise's resolve function alone stands
 * in the queue.
 */
import { AcquireTimeoutError, type Met, SlotExpiredError, withStackOf } from "./errors.ts";
import type { Gate } from "./gate.ts";
import type { Policy } from "./policy.ts";
import { HeldSlot } from "./slot.ts";

export type Resolve = (slot: HeldSlot | PromiseLike<HeldSlot>) => void;

export class Ticket extends HeldSlot {
  declare policy: Policy;
  /** When the wait began, then when the holding did. */
  declare sinceAt: number;

  // Those who do not wait need none of the following, so none is there until set.
  declare waitSignal: AbortSignal | undefined;
  declare timeoutMs: number;
  declare resolve: Resolve | undefined;
  declare reject: (reason: unknown) => void;
  /** Where it waits: in a pool first at its own gate, then at the global one. */
  declare at: Gate | undefined;
  /** In the queue there, if it is. */
  declare position: number | undefined;
  /** Taken where the wait began, with `traceTimeouts`. */
  declare trace: Error | undefined;

  constructor(gate: Gate, policy: Policy, width = 1) {
    super(gate, width);
    this.policy = policy;
    this.sinceAt = gate.context.clock.now();
  }

  override due(now: number): void {
    const {
      at,
      policy,
      gate: { key },
    } = this;
    const ms = now - this.sinceAt;
    if (at) {
      const error = withStackOf(this.trace, () => new AcquireTimeoutError({ ...met(at, this), waitedMs: ms }));
      return at.reject(this, "timedOut", error);
    }
    super.due(now);
    if (!policy.abortOnExpiry) return;
    this.controller ??= new AbortController();
    this.controller.abort(new SlotExpiredError({ semaphore: policy.name, key, heldMs: ms }));
  }
}

/** The use of a gate, for the error of a caller that it refuses. */
export function met({ key, capacity, inUse, waiting }: Gate, { policy, position }: Ticket): Met {
  return { semaphore: policy.name, key, capacity, inUse, waiting: position === undefined ? waiting : waiting - 1 };
}
