/** The options of all semaphores and calls, with their rules and defaults. */
import { type Clock, realClock } from "./clock.ts";
import type { SemaphoreEvent } from "./events.ts";
import {
  abortSignal,
  boolean,
  callback,
  clockRule,
  countFrom,
  integerFrom,
  numberFrom,
  type Rule,
  type Rules,
  readOptions,
  string,
  throwIf,
} from "./options.ts";

/** Options that `Semaphore`, `KeyedSemaphore` and `SlotPool` have in common. */
export interface PolicyOptions {
  /** Shown in events, errors and statistics. @defaultValue none */
  name?: string | undefined;
  /** A slot expires after this time, in milliseconds from 1 up, unless it is renewed. @defaultValue slots never expire */
  ttlMs?: number | undefined;
  /** The `timeoutMs` of calls that do not set it, in milliseconds. @defaultValue wait for ever */
  acquireTimeoutMs?: number | undefined;
  /** Whether `slot.signal` aborts, and `run` rejects, when the slot expires. @defaultValue false */
  abortOnExpiry?: boolean | undefined;
  /**
   * The largest number of waiters. Further calls that would have to wait reject with `QueueFullError`. In a `SlotPool` it
   * limits the waiters of all keys together, in a `KeyedSemaphore` those of each key.
   * @defaultValue unbounded
   */
  maxWaiters?: number | undefined;
  /**
   * Whether the stack of an `AcquireTimeoutError` shows the call of `acquire` or `run`. Recording it makes every wait with
   * a timeout several times as expensive.
   * @defaultValue false: no stack
   */
  traceTimeouts?: boolean | undefined;
  /** Source of time and timers. @defaultValue real time */
  clock?: Clock | undefined;
  /** Called synchronously with every event; errors that it throws are ignored. @defaultValue none */
  onEvent?: ((event: SemaphoreEvent) => void) | undefined;
}

/** Options of `acquire` and `run`. */
export interface AcquireOptions {
  /** Ends the wait when it aborts: the promise rejects with the reason of the signal. */
  signal?: AbortSignal | undefined;
  /** The longest wait, in milliseconds. 0 does not wait. @defaultValue the semaphore's `acquireTimeoutMs` */
  timeoutMs?: number | undefined;
  /** The number of slots to take at once. @defaultValue 1 */
  width?: number | undefined;
}

/** Options of `tryAcquire`. */
export interface TryAcquireOptions {
  /** The number of slots to take at once. @defaultValue 1 */
  width?: number | undefined;
}

/** `PolicyOptions` after the check, with defaults filled in. `Infinity` stands for no limit. */
export interface SlotPolicy extends Required<PolicyOptions> {
  readonly ttlMs: number;
  readonly acquireTimeoutMs: number;
  readonly maxWaiters: number;
  readonly clock: Clock;
}

/** The checked options of one instance. */
export interface Policy extends SlotPolicy {
  /** Whether taking and releasing a slot is only counting: no ttl, no `onEvent`, no `abortOnExpiry`. */
  readonly isPlain: boolean;
}

/** The default of every option. */
export const PLAIN: SlotPolicy = {
  name: undefined,
  ttlMs: Infinity,
  acquireTimeoutMs: Infinity,
  abortOnExpiry: false,
  maxWaiters: Infinity,
  traceTimeouts: false,
  clock: realClock,
  onEvent: undefined,
};

/** A number of slots. */
export const SLOTS: Rule = /* @__PURE__ */ countFrom(1);
/** A duration that may be 0, in milliseconds. */
export const PERIOD: Rule = /* @__PURE__ */ numberFrom(0);
/** A duration of at least 1 ms, in milliseconds. */
export const TTL: Rule = /* @__PURE__ */ numberFrom(1);

export const POLICY_RULES: Rules<PolicyOptions> = {
  name: string,
  ttlMs: TTL,
  acquireTimeoutMs: PERIOD,
  abortOnExpiry: boolean,
  maxWaiters: countFrom(0),
  traceTimeouts: boolean,
  clock: clockRule,
  onEvent: callback,
};

export const TRY_RULES: Rules<TryAcquireOptions> = { width: integerFrom(1) };
const ACQUIRE_RULES: Rules<AcquireOptions> = { ...TRY_RULES, signal: abortSignal, timeoutMs: PERIOD };

/** Fills in the defaults, and adds `isPlain`. `given` comes from `readOptions`, so none of its values is `undefined`. */
export function resolvePolicy<T extends SlotPolicy>(
  defaults: T,
  given: { [K in keyof T]?: T[K] | undefined },
): T & Policy {
  const policy = { ...defaults, ...given };
  return { ...policy, isPlain: policy.ttlMs === Infinity && !policy.onEvent && !policy.abortOnExpiry };
}

/** Reads the options of a call. Throws if they are invalid, or if the width exceeds `widest`. */
export function readCall(
  options: AcquireOptions | null,
  widest: number,
  rules: Partial<Rules<AcquireOptions>> = ACQUIRE_RULES,
): AcquireOptions {
  const call = readOptions(options ?? undefined, rules as Rules<AcquireOptions>);
  throwIf(tooWide(call.width, widest));
  return call;
}

/** The error for a width above `widest`; `undefined` if the width fits. */
export function tooWide(width: number | undefined, widest: number): Error | undefined {
  return width && width > widest ? integerFrom(1, widest)("width", width) : undefined;
}
