/**
 * The state of an acquire that needs more than counting. It is first a waiter and then the held slot.
 *
 *   state     `at`     deadline      ends when
 *   waiting   a gate   its timeout   the gate grants it (→ held) or refuses it, its signal aborts, or the timeout passes
 *   held      -        its ttl       its holder releases it, or the ttl passes
 *   ended     -        none          -
 *
 * A plain waiter (one slot, no signal, no timeout) has no ticket: the queue contains only the resolve function of its
 * promise.
 */
import { AcquireTimeoutError, type Met, SlotExpiredError, withStackOf } from "./errors.ts";
import type { Gate } from "./gate.ts";
import type { Policy } from "./policy.ts";
import { HeldSlot } from "./slot.ts";

/** The resolve function of the promise of an acquire. */
export type Resolve = (slot: HeldSlot | PromiseLike<HeldSlot>) => void;

export class Ticket extends HeldSlot {
  declare policy: Policy;
  /** When the wait began; after the grant, when the slot was granted. */
  declare sinceAt: number;

  // Only waiters need the following fields, so they do not exist until they are set.
  declare waitSignal: AbortSignal | undefined;
  declare timeoutMs: number;
  declare resolve: Resolve | undefined;
  declare reject: (reason: unknown) => void;
  /** The gate at which it waits: in a pool first the gate of its key, then the root. */
  declare at: Gate | undefined;
  /** Its index in the queue of that gate, while it is in the queue. */
  declare position: number | undefined;
  /** Created where the wait began, if `traceTimeouts` is set. Its stack shows the caller. */
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

/** The limit and use of a gate, for the error of a caller that it refuses. The caller itself does not count as waiting. */
export function met({ key, capacity, inUse, waiting }: Gate, { policy, position }: Ticket): Met {
  return { semaphore: policy.name, key, capacity, inUse, waiting: position === undefined ? waiting : waiting - 1 };
}
