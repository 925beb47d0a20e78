/// <reference lib="esnext.disposable" preserve="true" />
/**
 * What a user holds: a lease of the service, renewed while it is held.
 *
 * L1  A slot ends once: released, or lost. After that it renews nothing.
 * L2  `signal` aborts no later than the lease ends by this machine's clock, or when the service says that it is over.
 * L3  A renewal that fails is repeated until then.
 */
import type { RenewReply } from "@slotkeeper/protocol";
import type { Deliveries } from "./deliveries.ts";
import { RefusedError, SlotLostError } from "./errors.ts";
import type { NamedHost } from "./host-name.ts";
import { checkRelease, type ReleaseOptions, type WaitUntil } from "./options.ts";
import { endSpan, type SlotSpan } from "./telemetry.ts";
import { backoffMs, keepNothingAlive, sleep } from "./timing.ts";
import type { Transport } from "./transport.ts";

export interface ServiceSlot extends AsyncDisposable, Disposable {
  /** What the service knows the slot by; a secret of its holder. Empty for a slot that is not `guarded`. */
  readonly token: string;
  /** The same, under the library's name for it. */
  readonly id: string;
  /** Only grows, per host: what a guarded resource compares to refuse the holder of a lost lease. */
  readonly fence: number;
  /** False when `onFailure` let the work through without a slot. */
  readonly guarded: boolean;
  /** Aborts with `SlotLostError` when the lease is lost. */
  readonly signal: AbortSignal;
  /** When the lease ends unless it is renewed, by `Date.now()`; undefined for a slot that is not `guarded`. */
  readonly expiresAt: number | undefined;
  /** No longer held: released or lost. */
  readonly released: boolean;
  /** Begins the lease anew now; it is renewed by itself, too. `false` once lost, or if the service does not answer. */
  renew(): Promise<boolean>;
  /**
   * `true` the first time, `false` ever after. Resolves when the service has it, after a second at the latest; the
   * delivery goes on in the background. Never rejects for a failure of the service.
   */
  release(options?: ReleaseOptions): Promise<boolean>;
}

const RENEW_AT = 0.6;
const SHORTEST_RENEWAL_MS = 10;
const RELEASE_PATIENCE_MS = 1_000;

export interface SlotParts {
  readonly transport: Transport;
  readonly deliveries: Deliveries;
  readonly timeoutMs: number;
  readonly named: NamedHost;
  readonly hostname: string;
  readonly waitUntil: WaitUntil | undefined;
  readonly span: SlotSpan | undefined;
  /** Called once, with whether it was lost. */
  readonly onEnd: (isLost: boolean) => void;
}

export interface Lease {
  readonly token: string;
  readonly fence: number;
  /** Undefined: no lease at all, the work passes without a slot. */
  readonly leaseMs: number | undefined;
}

const dispose: typeof Symbol.dispose = Symbol.dispose ?? (Symbol.for("Symbol.dispose") as typeof Symbol.dispose);
const asyncDispose: typeof Symbol.asyncDispose =
  Symbol.asyncDispose ?? (Symbol.for("Symbol.asyncDispose") as typeof Symbol.asyncDispose);

export class HeldSlot implements ServiceSlot {
  readonly token: string;
  readonly fence: number;
  readonly guarded: boolean;
  readonly #parts: SlotParts;
  readonly #controller = new AbortController();
  readonly #heldSince = Date.now();
  #endsAt = 0;
  #released = false;
  #renewal: unknown;
  #expiry: unknown;

  constructor({ token, fence, leaseMs }: Lease, parts: SlotParts) {
    this.token = token;
    this.fence = fence;
    this.guarded = leaseMs !== undefined;
    this.#parts = parts;
    if (leaseMs !== undefined) this.#leased(leaseMs, Date.now());
  }

  get id(): string {
    return this.token;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get expiresAt(): number | undefined {
    return this.guarded ? this.#endsAt : undefined;
  }

  get released(): boolean {
    return this.#released;
  }

  async renew(): Promise<boolean> {
    if (this.#released || !this.guarded) return !this.#released;
    const askedAt = Date.now();
    const { transport, timeoutMs, span } = this.#parts;
    try {
      const options = { timeoutMs, traceparent: span?.traceparent };
      const { reply } = await transport.call<RenewReply>("renew", { slotToken: this.token }, options);
      if (!this.#released) this.#leased(reply.leaseMs, askedAt);
      return !this.#released;
    } catch (error) {
      if (error instanceof RefusedError && error.status === 410) this.#lost(error);
      return false;
    }
  }

  async release(options: ReleaseOptions = {}): Promise<boolean> {
    checkRelease(options);
    if (this.#released) return false;
    this.#end(false);
    endSpan(this.#parts.span, undefined, "released");
    if (this.guarded) await this.#deliver(options);
    return true;
  }

  [dispose](): void {
    void this.release();
  }

  async [asyncDispose](): Promise<void> {
    await this.release();
  }

  async #deliver({ status, hitUpstreamAtMs }: ReleaseOptions): Promise<void> {
    const { deliveries, named, waitUntil, span } = this.#parts;
    const body = {
      slotToken: this.token,
      ...named,
      ...(status !== undefined && { status }),
      ...(hitUpstreamAtMs !== undefined && { hitUpstreamAtMs, now: Date.now() }),
    };
    const delivered = deliveries.release(body, this.#endsAt, { waitUntil, traceparent: span?.traceparent });
    const patience = new AbortController();
    const enough = sleep(RELEASE_PATIENCE_MS, { signal: patience.signal }).catch(() => {});
    await Promise.race([delivered, enough]);
    patience.abort();
  }

  /** Counted from when the renewal was asked for: never longer than the service counts. */
  #leased(leaseMs: number, askedAt: number): void {
    this.#clearTimers();
    this.#endsAt = askedAt + leaseMs;
    this.#expiry = setTimeout(() => this.#lost(), this.#endsAt - Date.now());
    this.#renewal = setTimeout(() => void this.#renewUntilLost(), Math.max(SHORTEST_RENEWAL_MS, leaseMs * RENEW_AT));
    // A slot that somebody forgot must not keep the process alive; the service takes it back.
    keepNothingAlive(this.#expiry);
    keepNothingAlive(this.#renewal);
  }

  async #renewUntilLost(): Promise<void> {
    for (let failures = 1; !(await this.renew()); failures++) {
      if (this.#released) return;
      await sleep(backoffMs(failures), { isIdle: true });
      if (this.#released) return;
    }
  }

  #lost(cause?: unknown): void {
    if (this.#released) return;
    const { hostname, span } = this.#parts;
    const heldMs = Date.now() - this.#heldSince;
    const why = cause === undefined ? "the lease ended before it was renewed" : "the service took it back";
    const error = new SlotLostError(
      `The slot of "${hostname}" was lost after ${heldMs} ms: ${why}.`,
      { hostname, heldMs },
      cause,
    );
    this.#end(true);
    endSpan(span, error);
    this.#controller.abort(error);
  }

  #end(isLost: boolean): void {
    this.#released = true;
    this.#clearTimers();
    this.#parts.onEnd(isLost);
  }

  #clearTimers(): void {
    clearTimeout(this.#expiry as number);
    clearTimeout(this.#renewal as number);
  }
}
