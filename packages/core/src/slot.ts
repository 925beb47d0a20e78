/// <reference lib="esnext.disposable" preserve="true" />
/**
 * What a user holds. The slot itself releases, so nobody can free what another holds.
 *
 * I1  A slot is held from its making until it is released or expires, whichever comes first; it ends exactly once.
 * I2  After that `release` and `renew` are `false` and touch nothing.
 *
 * Most slots are taken and given back and nobody asks them anything, so a slot is three words (each more is paid for
 * by everybody: W5); what few ask for (an id, a number, a signal, a lease) is kept apart, in `SlotDetails`.
 */
import { Deadline } from "./deadlines.ts";
import { SlotExpiredError } from "./errors.ts";
import type { Gate } from "./gate.ts";
import { check, PLAIN, type Policy } from "./policy.ts";

export interface Slot extends Disposable {
  /** Unique and unguessable. */
  readonly id: string;
  /** 1…capacity, unique among the slots held at this moment; 0 if first asked for when the slot is no longer held. */
  readonly number: number;
  readonly width: number;
  /** Aborts with `SlotExpiredError` when the slot expires, if `abortOnExpiry` is set; never otherwise. */
  readonly signal: AbortSignal;
  readonly expiresAt: number | undefined;
  /** No longer held: released or expired. */
  readonly released: boolean;
  /** Begins the ttl anew, or another one. `false` once lost. */
  renew(ttlMs?: number): boolean;
  /** `true` the first time, `false` ever after. */
  release(): boolean;
}

/** What is known of a slot beyond that it is held; also its lease. */
export class SlotDetails extends Deadline {
  readonly #slot: HeldSlot;
  readonly policy: Policy;
  id: string | undefined = undefined;
  number = 0;
  controller: AbortController | undefined = undefined;
  takenAt = 0;
  /** Why it was taken back, once it was. */
  expired: SlotExpiredError | undefined = undefined;
  /** A slot that is held together with this one and given back before it (see `SlotPool`). */
  first: Slot | undefined = undefined;

  constructor(slot: HeldSlot, policy: Policy) {
    super();
    this.#slot = slot;
    this.policy = policy;
  }

  due(now: number): void {
    this.expired = new SlotExpiredError(this.policy.name, now - this.takenAt);
    this.#slot.end("expired");
    if (this.policy.abortOnExpiry) this.controller?.abort(this.expired);
  }
}

/** `Symbol.dispose`, for hosts that have none yet: a polyfill that comes later will use the same. */
const dispose: typeof Symbol.dispose = Symbol.dispose ?? (Symbol.for("Symbol.dispose") as typeof Symbol.dispose);

export class HeldSlot implements Slot {
  readonly #gate: Gate;
  /** Negative once the slot has ended. */
  #width: number;
  #details: SlotDetails | undefined = undefined;

  constructor(gate: Gate, width: number) {
    this.#gate = gate;
    this.#width = width;
  }

  get width(): number {
    return Math.abs(this.#width);
  }

  get released(): boolean {
    return this.#width < 0;
  }

  release(): boolean {
    return this.end("released");
  }

  [dispose](): void {
    this.release();
  }

  get id(): string {
    const details = this.details();
    details.id ??= this.#gate.identify(this);
    return details.id;
  }

  get number(): number {
    const details = this.details();
    if (details.number === 0 && !this.released) details.number = this.#gate.nextNumber();
    return details.number;
  }

  get signal(): AbortSignal {
    const details = this.details();
    if (details.controller === undefined) {
      details.controller = new AbortController();
      if (details.policy.abortOnExpiry && details.expired) details.controller.abort(details.expired);
    }
    return details.controller.signal;
  }

  get expiresAt(): number | undefined {
    return this.#details?.list && this.#details.dueAt;
  }

  renew(ttlMs: number = this.details().policy.ttlMs): boolean {
    check("ttlMs", ttlMs);
    if (this.released) return false;
    this.#gate.lease(this.details(), ttlMs);
    return true;
  }

  /** For the library only: the type `Slot` does not have it. Slots of a plain policy need none until asked. */
  details(policy: Policy = PLAIN): SlotDetails {
    this.#details ??= new SlotDetails(this, policy);
    return this.#details;
  }

  /** For the library only, too. */
  end(how: "released" | "expired"): boolean {
    const width = this.#width;
    if (width < 0) return false;
    this.#width = -width;
    this.#gate.free(width, this.#details, how);
    return true;
  }
}
