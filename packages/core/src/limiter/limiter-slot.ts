/// <reference lib="esnext.disposable" preserve="true" />
/**
 * What the user of a limiter holds: a `Slot` that can also say what the request really cost and how the upstream took
 * it.
 *
 * LSLOT1  A slot is held from its grant until it is released or expires, whichever comes first; it ends exactly once.
 * LSLOT2  After that `release`, `renew` and `settle` are `false` and touch nothing.
 *
 * Most slots are granted at once and released, so what only waiters and leases need is in `LimiterTicket`.
 */
import type { Link, LinkedList } from "../linked-list.ts";
import { check, checkOptions, kind, numberFrom, type Rules } from "../options.ts";
import { dispose, type Slot } from "../slot.ts";
import type { AgendaEntry } from "./agenda.ts";
import type { KeyState } from "./key-state.ts";
import type { LimiterGate } from "./limiter-gate.ts";
import { checkFields } from "./options.ts";
import { expiredError, timeoutError } from "./refusals.ts";
import { settleSlot } from "./settlement.ts";

/** Options of `LimiterSlot.release`. */
export interface ReleaseOptions {
  /** What the upstream's answer says about its capacity. @defaultValue "ok"; "ignore" if it says nothing */
  outcome?: "ok" | "overload" | "ignore" | undefined;
  /** Of an overload: no request is granted for this long. */
  retryAfterMs?: number | undefined;
}

/**
 * What `Limiter.acquire` gives: a `Slot` that also reports what the request really cost and whether the upstream was
 * overloaded.
 */
export interface LimiterSlot<B extends string = string> extends Slot {
  readonly key: unknown;
  /**
   * Says what the request really cost. Less than was charged is given back at once; more is charged now, into debt if
   * need be. Counts once, and only while the slot is held: `false` otherwise.
   */
  settle(costs: { readonly [Name in B]?: number | undefined }): boolean;
  /** `true` the first time, `false` ever after. */
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

export class GrantedSlot implements LimiterSlot, AgendaEntry {
  /** For the library only, as is all else that the type `LimiterSlot` does not have. */
  readonly gate: LimiterGate;
  readonly keyState: KeyState;
  /** As asked for, also where keys have no limits and share one state. */
  readonly key: unknown;
  /** By the index of the budget's name. */
  costs: readonly number[];
  /** When the wait began, then when the slot was granted. */
  sinceAt: number;
  released = false;
  /** It has an id, a number or a deadline, which have to be given up with it. */
  isMarked = false;

  // Few slots are asked for the following, so none is there until set.
  declare epoch: number | undefined;
  declare isSettled: boolean | undefined;
  declare knownId: string | undefined;
  declare knownNumber: number | undefined;
  declare controller: AbortController | undefined;
  declare dueAt: number;
  declare agendaAt: number;
  static {
    // Promises look for it, and find it sooner than they find out that it is nowhere.
    // oxlint-disable-next-line unicorn/no-thenable -- it says that there is none
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
    checkFields("settle", costs, this.gate.ledger.settleRules);
    if (this.released || this.isSettled) return false;
    this.isSettled = true;
    settleSlot(this.gate, this, (name) => costs[name]);
    return true;
  }

  release(options: ReleaseOptions = OK): boolean {
    if (options !== OK) checkRelease(options);
    return this.end("released", options);
  }

  [dispose](): void {
    this.end("released", OK);
  }

  /** Its ttl is over. */
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

function checkRelease(options: ReleaseOptions): void {
  checkOptions(options, RULES);
  if (options.retryAfterMs !== undefined) check("outcome", OVERLOAD, options.outcome);
}

/**
 * A slot that waits, or has a ttl.
 *
 *   state     `at`     deadline      ends by
 *   waiting   a gate   its timeout   the gate grants it (→ held); its signal aborts; its time is up; the gate refuses it
 *   held      -        its ttl       its holder releases; its time is up
 *   ended     -        none          -
 */
export class LimiterTicket extends GrantedSlot implements Link {
  readonly level: number;
  /** Counts up with every arrival. */
  arrival = 0;
  at: LimiterGate | undefined = undefined;
  waitSignal: AbortSignal | undefined = undefined;
  resolve: ((slot: GrantedSlot) => void) | undefined = undefined;
  reject: ((reason: unknown) => void) | undefined = undefined;
  /** Taken where the wait began, with `traceTimeouts`. */
  declare trace: Error | undefined;
  override agendaAt = -1;
  list: LinkedList | undefined = undefined;
  previous: Link | undefined = undefined;
  next: Link | undefined = undefined;

  constructor(
    gate: LimiterGate,
    keyState: KeyState,
    key: unknown,
    costs: readonly number[],
    sinceAt: number,
    level: number,
  ) {
    super(gate, keyState, key, costs, sinceAt);
    this.level = level;
  }

  override due(now: number): void {
    const { at, gate, sinceAt } = this;
    if (at) at.reject(this, "timedOut", timeoutError(gate, this.key, now - sinceAt, this.trace));
    else super.due(now);
  }
}
