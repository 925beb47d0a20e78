/**
 * One wait for a slot: a session of the service, from the first call to its end.
 *
 * WAIT1  It ends within its time by the monotonic clock (plus `ANSWER_MS` if the service never answers) and after
 *     `maxAttempts` failures in a row: with a grant, a pass of the failure policy, or an error.
 * WAIT2  It leaves no session behind: if it ends without a grant, the service gets a `cancel`, in the background.
 * WAIT3  Repeats are safe: all calls have the same `requestId`, and later ones have the token of the session. If the
 *     service no longer knows the session, a new one begins, within the same time.
 * WAIT4  A call that was answered quickly is followed by a pause, whatever the answer is. A call that the service held is
 *     not, however long the wait may be.
 * WAIT5  A grant is used only before the time at which its lease would be renewed, counted from the sending of the call.
 *     After it, the client polls again: it is unknown whether the service held the call or the answer was late.
 */
import type { AcquireReply, FirstCall } from "@slotkeeper/protocol";
import { deliver, promise } from "./deliveries.ts";
import { AcquireTimeoutError, OverloadedError, RefusedError, ThrottledError, UnavailableError } from "./errors.ts";
import type { FailurePolicy, Pass } from "./failure-policy.ts";
import type { NamedHost } from "./host-name.ts";
import type { AcquireOptions, ResolvedOptions, WaitUntil } from "./options.ts";
import { type Lease, RENEW_AT, type ServiceSlot } from "./slot.ts";
import { backoffMs, LONGEST_TIMER_MS, now, quietly, sleep } from "./timing.ts";
import { type Call, CallFailure } from "./transport.ts";

/** The options of a call. Those that are left out have the default of the client. */
export interface Asked extends AcquireOptions {
  /** The number of slots of a named semaphore. */
  readonly limit?: number;
  /** Whether the wait ends as soon as the service reports that no slot is free. */
  readonly isNow?: boolean;
  /** The held slots by their id. */
  readonly held?: Map<string, ServiceSlot>;
}

/** The same with the defaults. `hostname` is for messages and for the failure policy. */
interface Ask extends Asked {
  readonly named: NamedHost;
  readonly maxWaitMs: number;
  readonly waitUntil: WaitUntil | undefined;
}

export type Granted = Extract<AcquireReply, { result: "granted" }> & Lease;

/** The part of a call's timeout for which the service may hold the call. The rest is for the network. */
const HELD_PART = 0.75;
/** A caller with `onPending` gets its place after this time, not after a whole poll. */
const FIRST_PLACE_MS = 200;
const NOW_MS = 20;
/** Calls that are answered more quickly than this are spaced. The service keeps the place of a client for twice this time. */
const QUICK_MS = 500;
/**
 * How much longer than the wait the first answer may take. Without an answer it is unknown whether the service is
 * reachable.
 */
const ANSWER_MS = 1_000;
const CANCEL_FOR_MS = 5_000;

// One closure over its state, not a class: this is a quarter smaller, and the size is promised (decision 0110).
// oxlint-disable-next-line max-lines-per-function -- see above; each step inside is its own function
export async function waitForSlot(
  { url, perRequestTimeoutMs, maxWaitMs: usualWaitMs, maxAttempts }: ResolvedOptions,
  call: Call,
  policy: FailurePolicy,
  ask: Ask,
): Promise<Granted | Pass> {
  const { hostname, signal, maxWaitMs, isNow, onPending, waitUntil } = ask;
  const startedAt = now();
  let endsAt = startedAt + maxWaitMs;
  const leftMs = () => Math.max(0, endsAt - now());
  // A pause until the end of the wait ends it. Timers fire slightly early, so another call could come before
  // `Retry-After`.
  const pause = (ms: number) => {
    const pauseMs = Math.min(leftMs(), ms);
    if (pauseMs < ms) endsAt = -Infinity;
    return sleep(pauseMs, false, signal);
  };
  let first = firstCall(ask);
  let queryToken: string | undefined;
  let position: number | undefined;
  let failure: CallFailure | undefined;
  let attempts = 0;
  let failures = 0;
  // Whether a call was sent and no answer has ended the session.
  let isOpen = false;

  const gaveUp = () => {
    const waitedMs = Math.round(now() - startedAt);
    if (!failure) return new AcquireTimeoutError({ hostname, waitedMs, position });
    const { retryAfterMs, reason } = failure;
    if (retryAfterMs) return new OverloadedError({ hostname, retryAfterMs });
    return new UnavailableError({ hostname, url, attempts, waitedMs, reason }, failure);
  };

  const answered = () => {
    failures = 0;
    failure = undefined;
    policy.answered();
  };

  /** Throws if the reply is the end of the wait. After any other end of the session, a new one begins. */
  const ended = (reply: AcquireReply) => {
    isOpen = reply.result === "pending" || reply.result === "granted";
    queryToken = isOpen ? (reply as Granted).queryToken : undefined;
    if (reply.result === "overloaded") throw new OverloadedError({ hostname, retryAfterMs: reply.retryAfter * 1000 });
    if (reply.result === "throttled") {
      const { throttleCode: status, throttleRetryAfter, reason } = reply;
      // At most what a timer of the caller can wait.
      const retryAfterMs = Math.min(throttleRetryAfter * 1000, LONGEST_TIMER_MS);
      throw new ThrottledError({ hostname, status, reason, retryAfterMs });
    }
    if (reply.result !== "timeout") return;
    if (reply.reason === "deadline") throw gaveUp();
    // The service forgot the session after a restart, or because no poll came for a long time: ask again.
    first = firstCall(ask);
  };

  const step = async (): Promise<Granted | undefined> => {
    const isShort = isNow || (onPending && !queryToken);
    const isPoll = queryToken && !isNow;
    const longestMs = isNow ? NOW_MS : isShort ? FIRST_PLACE_MS : perRequestTimeoutMs * HELD_PART;
    const heldMs = Math.ceil(Math.min(leftMs(), longestMs));
    const timeoutMs = Math.min(leftMs() + (isPoll ? 1 : ANSWER_MS), perRequestTimeoutMs);
    const body = isPoll ? { queryToken } : { ...first, waitMs: heldMs };
    isOpen = true;
    attempts++;
    const { reply, retryAfterMs = 0, sentAt } = await call<AcquireReply>("acquire", body, signal, timeoutMs);
    answered();
    if (reply.result === "granted" && now() - sentAt < reply.leaseMs * RENEW_AT) {
      isOpen = false;
      return { ...reply, sentAt };
    }
    ended(reply);
    if (reply.result === "pending") {
      const { estimatedWaitMs, waiters, blockedBy } = reply;
      ({ position } = reply);
      if (isNow && blockedBy) throw gaveUp();
      // Not the token: it is a secret, and callers log what they get.
      quietly(() => onPending?.({ position: reply.position, estimatedWaitMs, waiters, blockedBy }));
    }
    // WAIT4. A caller that does not wait for a slot repeats its short calls, further and further apart.
    const spaceMs = Math.min(QUICK_MS, isShort ? heldMs * attempts : usualWaitMs / maxAttempts);
    await pause(Math.max(0, retryAfterMs, sentAt + spaceMs - now()));
    return undefined;
  };

  /**
   * WAIT2. If no answer contained the token of the session, the same `requestId` finds it. Without `waitMs` it is not
   * granted.
   */
  const cancel = async () => {
    const untilAt = now() + CANCEL_FOR_MS;
    const send = (name: "acquire" | "cancel", body: object) =>
      deliver<{ queryToken?: string }>(call, name, body, untilAt, true);
    const token = queryToken ?? (await send("acquire", first))?.queryToken;
    if (token) await send("cancel", { queryToken: token });
  };

  const failed = async (error: unknown): Promise<Pass | undefined> => {
    if (error instanceof RefusedError) {
      isOpen = false;
      answered();
    }
    if (!(error instanceof CallFailure)) throw error;
    // A poll that our own deadline ended is not a failure of the service if it has answered so far.
    if (!leftMs() && queryToken && !failure) return undefined;
    failure = error;
    failures++;
    const { retryAfterMs } = error;
    if (retryAfterMs) policy.answered();
    else policy.failed(leftMs() ? failures : Infinity);
    const pass = policy.pass(hostname);
    if (!pass) await pause(backoffMs(failures, retryAfterMs));
    return pass;
  };

  try {
    let end: Granted | Pass | undefined = policy.pass(hostname, perRequestTimeoutMs);
    while (!end) {
      signal?.throwIfAborted();
      if (!leftMs() || failures >= maxAttempts) throw gaveUp();
      end = await step().catch(failed);
    }
    return end;
  } finally {
    if (isOpen) promise(waitUntil, cancel());
  }
}

/** JSON omits `undefined` fields, and the service takes an empty name as absent. */
function firstCall({ named, bucket, width, cost, keys, class: ofClass, limit, maxWaitMs }: Ask): FirstCall {
  return {
    ...named,
    ipBucket: bucket,
    width,
    cost,
    keys,
    class: ofClass,
    limit,
    maxWaitMs: limit && maxWaitMs,
    requestId: crypto.randomUUID(),
  } as FirstCall;
}
