/**
 * Somebody in the queue. A wait ends in one of these ways, each of which takes the waiter out of the queue first:
 *
 *   granted    the gate hands it a slot             promise resolves
 *   aborted    its signal aborts (`onAbort`)        promise rejects with the signal's reason
 *   timed out  its deadline comes (`due`)           promise rejects with AcquireTimeoutError
 *   refused    the gate closes or shrinks           promise rejects with ClosedError or RangeError
 *
 * Whoever waits for one plain slot with no signal and no timeout is represented by its promise's resolve function
 * alone: nothing about it need be remembered, and the object would be a tenth of what contended waiting costs.
 */
import { Deadline } from "./deadlines.ts";
import { AcquireTimeoutError } from "./errors.ts";
import type { Gate } from "./gate.ts";
import type { Policy } from "./policy.ts";
import { unwatch, watch } from "./signals.ts";
import type { HeldSlot } from "./slot.ts";

export type Resolve = (slot: HeldSlot | PromiseLike<HeldSlot>) => void;
type Reject = (reason: unknown) => void;

export class Waiter extends Deadline {
  readonly #gate: Gate;
  readonly policy: Policy;
  readonly width: number;
  readonly signal: AbortSignal | undefined;
  readonly #arrivedAt: number;
  resolve!: Resolve;
  reject!: Reject;
  position = 0;

  /** `arrivedAt`: when the caller began to wait, if that was earlier, elsewhere. */
  constructor(
    gate: Gate,
    policy: Policy,
    width: number,
    signal: AbortSignal | undefined,
    timeoutMs: number,
    arrivedAt: number | undefined,
  ) {
    super();
    this.#gate = gate;
    this.policy = policy;
    this.width = width;
    this.signal = signal;
    this.#arrivedAt = arrivedAt ?? gate.context.clock.now();
    if (signal !== undefined) watch(this, signal);
    if (timeoutMs < Infinity) gate.context.timeouts.set(this, timeoutMs);
  }

  get waitedMs(): number {
    return this.#gate.context.clock.now() - this.#arrivedAt;
  }

  /** Lets go of signal and timer. */
  detach(): void {
    if (this.signal !== undefined) unwatch(this, this.signal);
    this.#gate.context.timeouts.drop(this);
  }

  onAbort(): void {
    this.#gate.end(this, "aborted", this.signal?.reason);
  }

  due(): void {
    const { waiting } = this.#gate;
    this.#gate.end(this, "timedOut", new AcquireTimeoutError(this.policy.name, this.waitedMs, waiting - 1));
  }
}
