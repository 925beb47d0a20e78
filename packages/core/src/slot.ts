/// <reference lib="esnext.disposable" preserve="true" />
/**
 * What a user holds. The slot itself releases, so nobody can free what another holds.
 *
 * I1  A slot is held from its making until it is released or expires, whichever comes first; it ends exactly once.
 * I2  After that `release` and `renew` are `false` and touch nothing.
 *
 * Most slots are taken and given back and nobody asks them anything, so a slot is three words (each more is paid for
 * by everybody: W5); what few ask for (an id, a number, a signal, a ttl) is kept apart, in a `Ticket`.
 */
import type { Gate } from "./gate.ts";
import { check, PLAIN } from "./policy.ts";
import { Ticket } from "./ticket.ts";

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

/** `Symbol.dispose`, for hosts that have none yet: a polyfill that comes later will use the same. */
const dispose: typeof Symbol.dispose = Symbol.dispose ?? (Symbol.for("Symbol.dispose") as typeof Symbol.dispose);

export class HeldSlot implements Slot {
  readonly #gate: Gate;
  /** Negative once the slot has ended. */
  #width: number;
  #ticket: Ticket | undefined;

  constructor(gate: Gate, width: number, ticket: Ticket | undefined) {
    this.#gate = gate;
    this.#width = width;
    this.#ticket = ticket;
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
    const { ticket } = this;
    ticket.id ??= this.#gate.identify(this);
    return ticket.id;
  }

  get number(): number {
    const { ticket } = this;
    if (!this.released) ticket.number ??= this.#gate.nextNumber();
    return ticket.number ?? 0;
  }

  get signal(): AbortSignal {
    const { ticket } = this;
    if (ticket.controller === undefined) {
      ticket.controller = new AbortController();
      if (ticket.policy.abortOnExpiry && ticket.expired) ticket.controller.abort(ticket.expired);
    }
    return ticket.controller.signal;
  }

  get expiresAt(): number | undefined {
    return this.#ticket?.list && this.#ticket.dueAt;
  }

  renew(ttlMs: number = this.ticket.policy.ttlMs): boolean {
    check("ttlMs", ttlMs);
    if (this.released) return false;
    this.#gate.time(this.ticket, ttlMs);
    return true;
  }

  /** For the library only: the type `Slot` does not have it. */
  get ticket(): Ticket {
    if (this.#ticket === undefined) {
      this.#ticket = new Ticket(this.#gate, PLAIN, this.#width);
      this.#ticket.slot = this;
    }
    return this.#ticket;
  }

  /** For the library only, too. */
  end(how: "released" | "expired"): boolean {
    const width = this.#width;
    if (width < 0) return false;
    this.#width = -width;
    this.#gate.free(width, this.#ticket, how);
    return true;
  }
}
