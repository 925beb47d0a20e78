/// <reference lib="esnext.disposable" preserve="true" />
/**
 * The slot of a limiter: a `Slot` that also takes the true cost of the request and the outcome at the upstream.
 *
 * LSLOT1  A slot is held from its grant until it is released or expires, whichever comes first. It ends exactly once.
 * LSLOT2  After that, `release`, `renew` and `settle` return `false` and change nothing.
 *
 * Most slots are granted at once and released. The fields that only waiters and leases need are in `LimiterTicket`.
 */
import type { Due } from "../agenda.ts";
import type { Link, LinkedList } from "../linked-list.ts";
import { check, kind, numberFrom, type Rules, readOptions } from "../options.ts";
import { dispose, type Slot } from "../slot.ts";
import type { KeyState } from "./key-state.ts";
import type { LimiterGate } from "./limiter-gate.ts";
import { readFields } from "./options.ts";
import { expiredError, timeoutError } from "./refusals.ts";

/** Options of `LimiterSlot.release`. */
export interface ReleaseOptions {
  /** What the answer of the upstream says about its capacity. Use `ignore` if it says nothing. @defaultValue "ok" */
  outcome?: "ok" | "overload" | "ignore" | undefined;
  /** With `overload` only: no request is granted for this time, in milliseconds. @defaultValue 0 */
  retryAfterMs?: number | undefined;
}

/**
 * The result of `Limiter.acquire`: a `Slot` that also takes the true cost of the request and whether the upstream was
 * overloaded.
 */
export interface LimiterSlot<B extends string = string> extends Slot {
  /** The `key` of the request, or `undefined`. */
  readonly key: unknown;
  /**
   * Reports the true cost of the request, in units by the name of the budget. If it is lower than the charge, the
   * difference is given back at once. If it is higher, the difference is charged now, and the budget may go into debt.
   * Works once, and only while the slot is held; otherwise it returns `false`.
   */
  settle(costs: { readonly [Name in B]?: number | undefined }): boolean;
  /** Gives the slot back. Returns `true` the first time and `false` after that. */
  release(options?: ReleaseOptions): boolean;
}

const OUTCOMES = ["ok", "overload", "ignore"];
const RULES: Rules<ReleaseOptions> = {
  outcome: kind(`one of ${OUTCOMES.join(", ")}`, (value) => OUTCOMES.includes(value as string)),
  retryAfterMs: numberFrom(0),
};
const OVERLOAD = kind("overload if `retryAfterMs` is given", (value) => value === "overload");
const TTL = numberFrom(1);
const OK: ReleaseOptions = {};
export const IGNORE: ReleaseOptions = { outcome: "ignore" };

export class GrantedSlot implements LimiterSlot, Due {
  /** Internal, like every member that the type `LimiterSlot` does not have. */
  readonly gate: LimiterGate;
  readonly keyState: KeyState;
  /** The key of the request. It is kept even if keys have no limits and share one `KeyState`. */
  readonly key: unknown;
  /** The charge for each budget, by the index of the budget's name. */
  costs: readonly number[];
  /** While waiting: when the wait began. While held: when the slot was granted. */
  sinceAt: number;
  released = false;
  /** Whether it has an id, a number or a deadline that must be cleaned up when it ends. */
  isMarked = false;

  // Few slots need these fields. They do not exist on the object until they are set.
  declare epoch: number | undefined;
  declare isSettled: boolean | undefined;
  declare knownId: string | undefined;
  declare knownNumber: number | undefined;
  declare controller: AbortController | undefined;
  declare dueAt: number;
  declare agendaAt: number;
  static {
    // Promises look up `then` on every slot. The lookup is faster if the prototype has the property.
    // oxlint-disable-next-line unicorn/no-thenable -- the value is `undefined`, so a slot is not thenable
    (GrantedSlot.prototype as { then?: undefined }).then = undefined;
  }

  constructor(gate: LimiterGate, keyState: KeyState, key: unknown, costs: readonly number[], sinceAt: number) {
    this.gate = gate;
    this.keyState = keyState;
    this.key = key;
    this.costs = costs;
    this.sinceAt = sinceAt;
  }

  get width(): number {
    return 1;
  }

  /** An error says nothing about the capacity of the upstream. */
  get failed(): ReleaseOptions {
    return IGNORE;
  }

  /** 128 random bits. */
  get id(): string {
    if (!this.knownId) {
      this.isMarked = true;
      this.knownId = crypto.getRandomValues(new Uint32Array(4)).join("-");
      if (!this.released) this.gate.byId.set(this.knownId, this);
    }
    return this.knownId;
  }

  get number(): number {
    this.isMarked = true;
    if (!this.released) this.knownNumber ??= this.gate.numbers.take(this.gate.capacity);
    return this.knownNumber ?? 0;
  }

  get signal(): AbortSignal {
    this.controller ??= new AbortController();
    return this.controller.signal;
  }

  get expiresAt(): number | undefined {
    return this.agendaAt >= 0 ? this.dueAt - this.gate.time.behind : undefined;
  }

  renew(ttlMs: number = this.gate.policy.ttlMs): boolean {
    check("ttlMs", TTL, ttlMs);
    if (!this.released) this.gate.lease(this, ttlMs);
    return !this.released;
  }

  settle(costs: { readonly [name: string]: number | undefined }): boolean {
    const given = readFields("settle", costs, this.gate.ledger.settleRules);
    if (this.released || this.isSettled) return false;
    this.isSettled = true;
    this.#correct((name) => given[name]);
    return true;
  }

  release(options: ReleaseOptions = OK): boolean {
    return this.end("released", options === OK || options === IGNORE ? options : readRelease(options));
  }

  /** For work that never started: it costs nothing (LIMIT5). */
  refund(): void {
    if (!this.released) this.#correct(() => 0);
  }

  /** Corrects the charges, by the name of the budget; `undefined` keeps a charge. Then serves waiters. */
  #correct(actualOf: (name: string) => number | undefined): void {
    const { gate, keyState } = this;
    const now = gate.time.now();
    for (const [index, name] of gate.ledger.names.entries()) {
      const actual = actualOf(name);
      if (actual !== undefined) gate.ledger.correct(this, index, actual, now);
    }
    if (gate.waiting === 0) return;
    if (keyState.waiting > 0) gate.line.place(keyState, now);
    gate.serve(now);
  }

  await(more: 1 | -1): void {
    this.gate.await(more);
  }

  [dispose](): void {
    this.end("released", OK);
  }

  /** The ttl is over. */
  due(now: number): void {
    this.end("expired", IGNORE);
    if (!this.gate.policy.abortOnExpiry) return;
    this.controller ??= new AbortController();
    this.controller.abort(expiredError(this.gate, this.key, now - this.sinceAt));
  }

  end(how: "released" | "expired", options: ReleaseOptions): boolean {
    if (this.released) return false;
    this.released = true;
    this.gate.free(this, how, options);
    return true;
  }
}

function readRelease(options: ReleaseOptions): ReleaseOptions {
  const given = readOptions(options, RULES);
  if (given.retryAfterMs !== undefined) check("outcome", OVERLOAD, given.outcome);
  return given;
}

/**
 * A slot that waits, or has a ttl.
 *
 *   state     `at`     deadline      ends by
 *   waiting   a gate   its timeout   granted (→ held); aborted by its signal; timed out; refused
 *   held      -        its ttl       released by the holder; expired
 *   ended     -        none          -
 */
export class LimiterTicket extends GrantedSlot implements Link {
  level = 0;
  /** The number of the arrival; later arrivals have larger numbers. */
  arrival = 0;
  at: LimiterGate | undefined = undefined;
  waitSignal: AbortSignal | undefined = undefined;
  resolve: ((slot: GrantedSlot) => void) | undefined = undefined;
  reject: ((reason: unknown) => void) | undefined = undefined;
  /** With `traceTimeouts`: the stack at which the wait began. */
  declare trace: Error | undefined;
  override agendaAt = -1;
  list: LinkedList | undefined = undefined;
  previous: Link | undefined = undefined;
  next: Link | undefined = undefined;

  override due(now: number): void {
    const { at, gate, sinceAt } = this;
    if (at === undefined) return super.due(now);
    // A waiter that can be served at the exact time of its timeout is served.
    at.serve(now);
    if (this.at) at.reject(this, "timedOut", timeoutError(gate, this.key, now - sinceAt, this.trace));
  }
}
