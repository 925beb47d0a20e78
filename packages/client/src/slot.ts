/// <reference lib="esnext.disposable" preserve="true" />
/**
 * The slot that a user holds: a lease of the service, renewed while it is held.
 *
 * CLEASE1  A slot ends once: released, or lost. After that it is not renewed.
 * CLEASE2  `signal` aborts no later than the lease ends by the monotonic clock of this machine, or when the service
 *     reports that it ended. A lease counts from the sending of the call that was answered with it, so it never ends later
 *     than at the service.
 * CLEASE3  A renewal that fails is repeated until then.
 */
import type { ReleaseReply, RenewReply } from "@slotkeeper/protocol";
import { deliver, promise } from "./deliveries.ts";
import { type RefusedError, SlotLostError } from "./errors.ts";
import type { NamedHost } from "./host-name.ts";
import { check, type ReleaseOptions, type WaitUntil } from "./options.ts";
import { endSpan, type SlotSpan } from "./telemetry.ts";
import { backoffMs, LONGEST_TIMER_MS, now, quietly, sleep, startTimer } from "./timing.ts";
import type { Call } from "./transport.ts";

/** A slot of the service. It is renewed while it is held, and released once. */
export interface ServiceSlot extends AsyncDisposable, Disposable {
  /** Identifies the slot at the service; a secret of its holder. Empty for a slot that is not `guarded`. */
  readonly token: string;
  /** The same value as `token`; the library uses this name. */
  readonly id: string;
  /**
   * Grows with every grant of the host. A resource that remembers the highest fence can refuse the holder of a lost
   * lease.
   */
  readonly fence: number;
  /** False when `onFailure` let the work through without a slot. */
  readonly guarded: boolean;
  /** What was charged to the budgets of the host, by name. Empty if the host has none. */
  readonly charged: { readonly [budget: string]: number };
  /** Aborts with `SlotLostError` when the lease is lost. */
  readonly signal: AbortSignal;
  /** When the lease ends unless it is renewed, by `Date.now()`; undefined for a slot that is not `guarded`. */
  readonly expiresAt: number | undefined;
  /** Whether the slot is no longer held: released or lost. */
  readonly released: boolean;
  /**
   * Renews the lease now; the client also does this by itself. Returns `false` if the lease is lost or the service does
   * not answer.
   */
  renew(): Promise<boolean>;
  /**
   * Releases the slot. Resolves to `true` the first time and to `false` after that, when the service has the release,
   * or after one second at the latest. The delivery then continues in the background. Never rejects for a failure of
   * the service.
   */
  release(options?: ReleaseOptions): Promise<boolean>;
}

const RELEASE_KINDS = {
  status: "a positive number",
  hitUpstreamAtMs: "a positive number",
  used: "an object",
  onIgnored: "a function",
} as const;
/** The part of a lease after which it is renewed. */
export const RENEW_AT = 0.6;
/** Renewals are at least this far apart, however short the lease is. */
const LEAST_RENEWAL_MS = 25;
const RELEASE_PATIENCE_MS = 1_000;

/** `sentAt` is when the call was sent that was answered with this lease, by the monotonic clock. */
export interface Lease {
  readonly leaseMs: number;
  readonly sentAt: number;
  readonly charged?: ServiceSlot["charged"];
}

export interface SlotParts {
  readonly call: Call;
  readonly named: NamedHost;
  readonly hostname: string;
  readonly waitUntil: WaitUntil | undefined;
  readonly span: SlotSpan | undefined;
  /** Called once. */
  readonly onEnd: () => void;
}

/** Without a lease, the work runs without a slot. */
// oxlint-disable-next-line max-lines-per-function -- one closure over its state, for the size (decision 0110)
export function heldSlot(parts: SlotParts, token = "", fence = 0, lease?: Lease): ServiceSlot {
  const { call, named, hostname, waitUntil, span, onEnd } = parts;
  const controller = new AbortController();
  const heldSince = now();
  let endsAt = 0;
  let expiresAt: number | undefined;
  let released = false;
  let timers: number[] = [];

  const end = (error?: unknown) => {
    released = true;
    timers.forEach(clearTimeout);
    onEnd();
    endSpan(span, error ? undefined : "released", error);
  };

  const lost = (reason: string) => {
    if (released) return;
    const error = new SlotLostError({ hostname, heldMs: Math.round(now() - heldSince), reason });
    end(error);
    controller.abort(error);
  };

  /** CLEASE2. A lease that is longer than a timer counts as shorter, and is renewed. */
  const leased = ({ leaseMs, sentAt }: Lease) => {
    const ms = Math.min(leaseMs, LONGEST_TIMER_MS);
    endsAt = sentAt + ms;
    const leftMs = endsAt - now();
    expiresAt = Date.now() + leftMs;
    timers.forEach(clearTimeout);
    // A forgotten slot must not keep the process alive. The service takes it back.
    timers = [
      startTimer(() => lost("its lease ended"), leftMs, true),
      startTimer(renewOn, Math.max(LEAST_RENEWAL_MS, leftMs - ms * (1 - RENEW_AT)), true),
    ];
  };

  const renew = async (): Promise<boolean> => {
    if (released || !lease) return !released;
    try {
      const { reply, sentAt } = await call<RenewReply>("renew", { slotToken: token });
      if (!released) leased({ ...reply, sentAt });
    } catch (error) {
      if ((error as RefusedError).status === 410) lost("it was taken back");
      return false;
    }
    return !released && now() < endsAt;
  };

  /** CLEASE3. */
  const renewOn = async (failures = 1): Promise<void> => {
    if ((await renew()) || released) return;
    await sleep(backoffMs(failures), true);
    await renewOn(failures + 1);
  };

  const release = async (options: ReleaseOptions = {}): Promise<boolean> => {
    const { onIgnored, ...report } = check(options, RELEASE_KINDS);
    if (released) return false;
    end();
    if (!lease) return true;
    const body = { ...named, ...report, slotToken: token, now: Date.now() };
    const delivered = deliver<ReleaseReply>(call, "release", body, endsAt).then((reply) => {
      const ignored = reply?.ignored;
      if (ignored) quietly(() => onIgnored?.(ignored));
    });
    promise(waitUntil, delivered);
    await Promise.race([delivered, sleep(RELEASE_PATIENCE_MS, true)]);
    return true;
  };

  if (lease) leased(lease);
  return {
    token,
    id: token,
    fence,
    guarded: !!lease,
    charged: { ...lease?.charged },
    signal: controller.signal,
    get expiresAt() {
      return expiresAt;
    },
    get released() {
      return released;
    },
    renew,
    release,
    // oxlint-disable-next-line no-unnecessary-type-assertion -- tsgolint crashes on a promise under a computed key
    [Symbol.dispose]: release as () => unknown,
    [Symbol.asyncDispose]: release as () => Promise<unknown> as () => Promise<void>,
  };
}
