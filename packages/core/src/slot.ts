/// <reference lib="esnext.disposable" preserve="true" />
/**
 * A held slot. `release` is a method of the slot, so a caller does not release the slot of another caller by mistake.
 *
 * SLOT1  A slot is held from its creation until it is released or expires, whichever comes first. It ends exactly once.
 * SLOT2  After that, `release` and `renew` return `false` and change nothing.
 *
 * Callers acquire and release most slots without reading their properties. So a slot has only two fields: each further
 * field would make every acquire slower (W5).
 */
import type { Deadline } from "./deadlines.ts";
import type { Gate } from "./gate.ts";
import type { Link, LinkedList } from "./linked-list.ts";
import { check, kind, type Rule } from "./options.ts";
import { PLAIN, type SlotPolicy, TTL } from "./policy.ts";
import { SlotNumbers } from "./slot-numbers.ts";

/**
 * A held slot, returned by `acquire`. Release it once, or let `using` or `run` release it. A second release
 * does nothing.
 */
export interface Slot extends Disposable {
  /** A unique text that cannot be guessed. */
  readonly id: string;
  /** From 1 to the capacity, unique among the slots that are held now. 0 if it is first read after the release. */
  readonly number: number;
  /** The number of slots that it takes. */
  readonly width: number;
  /** Aborts with `SlotExpiredError` when the slot expires, if `abortOnExpiry` is set. Otherwise it never aborts. */
  readonly signal: AbortSignal;
  /** When the slot expires, in milliseconds of the semaphore's clock; `undefined` without a ttl. */
  readonly expiresAt: number | undefined;
  /** Whether the slot was released or has expired. */
  readonly released: boolean;
  /** Starts the ttl again, with `ttlMs` milliseconds if given. Returns `false` if the slot is no longer held. */
  renew(ttlMs?: number): boolean;
  /** Releases the slot. Returns `true` the first time, `false` after that. */
  release(): boolean;
}

/** What `release(id)` takes. Without it, a call that was meant to be `slot.release()` would release nothing. */
export const SLOT_ID: Rule = /* @__PURE__ */ kind(
  "a string (or call `slot.release()`)",
  (value) => typeof value === "string",
);

/** `Symbol.dispose`. On hosts that do not have it yet, this is the symbol that a polyfill loaded later will use. */
export const dispose: typeof Symbol.dispose = Symbol.dispose ?? (Symbol.for("Symbol.dispose") as typeof Symbol.dispose);

export class HeldSlot implements Slot, Deadline {
  /** Internal, like every member that the type `Slot` does not have. */
  declare readonly gate: Gate;
  /** Negative after the slot has ended. */
  #width: number;

  // Few slots need the following fields, so they do not exist until they are set.
  /** Set if the slot has an id, a number or a deadline: then its end involves more than counting. */
  declare policy: SlotPolicy | undefined;
  declare knownId: string | undefined;
  declare knownNumber: number | undefined;
  declare controller: AbortController | undefined;
  declare list: LinkedList | undefined;
  declare previous: Link | undefined;
  declare next: Link | undefined;
  declare dueAt: number;
  static {
    // Resolving a promise with a slot reads `then`. Finding `undefined` here is faster than searching the whole prototype
    // chain: a tenth of W1.
    // oxlint-disable-next-line unicorn/no-thenable -- it is undefined, so a slot is not thenable
    (HeldSlot.prototype as { then?: undefined }).then = undefined;
  }

  constructor(gate: Gate, width: number) {
    this.gate = gate;
    this.#width = width;
  }

  get width(): number {
    return Math.abs(this.#width);
  }

  get released(): boolean {
    return this.#width < 0;
  }

  /** Contains 128 random bits. */
  get id(): string {
    this.policy ??= PLAIN;
    this.knownId ??= crypto.getRandomValues(new Uint32Array(4)).join("-");
    if (!this.released) this.gate.context.slots.set(this.knownId, this);
    return this.knownId;
  }

  get number(): number {
    const { root } = this.gate;
    this.policy ??= PLAIN;
    if (!this.released) this.knownNumber ??= (root.numbers ??= new SlotNumbers()).take(root.capacity);
    return this.knownNumber ?? 0;
  }

  get signal(): AbortSignal {
    this.controller ??= new AbortController();
    return this.controller.signal;
  }

  get expiresAt(): number | undefined {
    return this.list && this.dueAt;
  }

  renew(ttlMs: number = this.policy?.ttlMs ?? Infinity): boolean {
    check("ttlMs", TTL, ttlMs);
    const { context } = this.gate;
    this.policy ??= PLAIN;
    if (!this.released) context.time(this, ttlMs, context.clock.now());
    return !this.released;
  }

  release(): boolean {
    return this.end("released");
  }

  [dispose](): void {
    this.release();
  }

  /** Counts a `run` that ends when this slot expires. */
  await(more: 1 | -1): void {
    const { context } = this.gate;
    context.runs += more;
    context.await(0);
  }

  due(_now: number): void {
    this.end("expired");
  }

  end(how: "released" | "expired"): boolean {
    const width = this.#width;
    if (width < 0) return false;
    this.#width = -width;
    this.gate.free(this, width, how);
    return true;
  }
}
