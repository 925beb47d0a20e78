/**
 * What is remembered of an acquire that is more than counting: through its wait and through its holding.
 *
 *   state     deadline      ends by
 *   waiting   its timeout   the gate grants it (→ held); its signal aborts; its time is up; the gate refuses it
 *   held      its ttl       its holder releases; its time is up
 *   ended     none          -
 *
 * Whoever waits for one plain slot with no signal and no timeout has none: its promise's resolve function alone stands
 * in the queue, and its slot gets one if it is asked for an id, a number, a signal or a ttl.
 */
import { Deadline } from "./deadlines.ts";
import { AcquireTimeoutError, SlotExpiredError } from "./errors.ts";
import type { Gate } from "./gate.ts";
import type { Policy } from "./policy.ts";
import type { HeldSlot } from "./slot.ts";

export type Resolve = (slot: HeldSlot | PromiseLike<HeldSlot>) => void;

export class Ticket extends Deadline {
  readonly #gate: Gate;
  readonly policy: Policy;
  readonly width: number;
  /** When the wait began, then when the holding did. */
  sinceAt: number;

  // Most tickets need few of the following, so none is there until set.
  // While waiting:
  declare signal: AbortSignal | undefined;
  declare resolve: Resolve | undefined;
  declare reject: ((reason: unknown) => void) | undefined;
  declare position: number;
  // While held, and after:
  declare slot: HeldSlot | undefined;
  declare id: string | undefined;
  declare number: number | undefined;
  declare controller: AbortController | undefined;
  /** Why the slot was taken back, once it was. */
  declare expired: SlotExpiredError | undefined;
  /** A slot that is held together with this one and given back before it (see `SlotPool`). */
  declare first: HeldSlot | undefined;

  constructor(gate: Gate, policy: Policy, width: number, sinceAt: number = gate.context.clock.now()) {
    super();
    this.#gate = gate;
    this.policy = policy;
    this.width = width;
    this.sinceAt = sinceAt;
  }

  onAbort(): void {
    this.#gate.leave(this, "aborted", this.signal?.reason);
  }

  due(now: number): void {
    const { name: semaphore, abortOnExpiry } = this.policy;
    const elapsedMs = now - this.sinceAt;
    if (this.slot === undefined) {
      const waiting = this.#gate.waiting - 1;
      this.#gate.leave(this, "timedOut", new AcquireTimeoutError({ semaphore, waitedMs: elapsedMs, waiting }));
    } else {
      this.expired = new SlotExpiredError({ semaphore, heldMs: elapsedMs });
      this.slot.end("expired");
      if (abortOnExpiry) this.controller?.abort(this.expired);
    }
  }
}
