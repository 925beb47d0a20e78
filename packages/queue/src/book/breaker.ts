import type { BreakerPolicy } from "../host-policy.ts";
import type { BreakerState } from "./records.ts";

/**
 * The circuit breaker: keeps requests from a host that answers with errors. Pure functions on the state in the head.
 *
 * | state     | event                                   | next                                             |
 * |-----------|-----------------------------------------|--------------------------------------------------|
 * | closed    | a threshold is met in the window        | open, since now                                  |
 * | open      | any report                              | open: late answers to old requests are ignored   |
 * | open      | the session's window has passed         | half open (derived from the time, not stored)    |
 * | half open | success                                 | closed                                           |
 * | half open | error                                   | open, since now                                  |
 * | half open | a probe ends with outcome unknown       | half open: the next probe goes                   |
 * | any       | an operator opens or closes it          | open, since now; closed                          |
 * | any       | an hour since it opened                 | closed (derived from the time, not stored)       |
 *
 * How long the breaker is open depends on the session that reads it: a session may have its own window, of at most an
 * hour. Within the hour the breaker does not close by time, so every window holds, no matter which session read the breaker before, and
 * no window is stored.
 * All counts belong to one observation window. The first report after its end starts the next window.
 */

/** The state of the circuit breaker in the book, before the window of a session is applied: see `phaseFor`. */
export type BreakerView =
  | { readonly phase: "closed" }
  /** Each session compares `openForMs` with its own window. After that time the breaker is half open for the session. */
  | { readonly phase: "open"; readonly code: number; readonly openForMs: number };

export type BreakerPhase = "closed" | "open" | "half-open";

const CLOSED: BreakerState = { code: 0, errors: 0, successes: 0, consecutive: 0 };

/** After this time an open breaker counts as closed. No window of a session is longer. */
const HOUR_MS = 3_600_000;

/** The phase of a breaker at a time, as operators and refused sessions see it. */
export function viewBreaker(state: BreakerState, now: number): BreakerView {
  const { openedAt, code } = state;
  if (openedAt === undefined || closesAt(state) <= now) return { phase: "closed" };
  return { phase: "open", code, openForMs: now - openedAt };
}

/** The state of the breaker for a session with this window. */
export function phaseFor(view: BreakerView, openMs: number): BreakerPhase {
  if (view.phase === "closed") return "closed";
  return view.openForMs < openMs ? "open" : "half-open";
}

/** For which time a session with this window is refused, and the status that opened the breaker. Undefined: it is not. */
export function throttleFor(
  view: BreakerView,
  openMs: number,
): { readonly code: number; readonly retryInMs: number } | undefined {
  if (view.phase === "closed" || view.openForMs >= openMs) return undefined;
  return { code: view.code, retryInMs: Math.min(openMs, HOUR_MS) - view.openForMs };
}

/** The state of a breaker that opens now. */
export function openBreaker(code: number, now: number): BreakerState {
  return { ...CLOSED, code, openedAt: now };
}

/** The state of a breaker that an operator or a success closes. */
export function closeBreaker(): BreakerState {
  return CLOSED;
}

/** The state after an answer of the upstream. Returns the same object if the status does not count. */
export function reportTo(
  state: BreakerState,
  report: { readonly status: number; readonly isProbe: boolean },
  now: number,
  policy: BreakerPolicy,
): BreakerState {
  const { status, isProbe } = report;
  if (!isCounted(status, policy)) return state;
  const isError = policy.protectHttpCodes.includes(status);
  const current = closesAt(state) <= now ? CLOSED : state;
  if (current.openedAt === undefined) return observe(current, isError, status, now, policy);
  // The answer to a probe counts for a half-open breaker, whatever window its session has.
  if (!isProbe && now - current.openedAt < policy.openMs) return current;
  return isError ? openBreaker(status, now) : CLOSED;
}

/** Whether the status is a success or an error. Others say nothing about the host. */
export function isCounted(status: number, { protectHttpCodes }: BreakerPolicy): boolean {
  return protectHttpCodes.includes(status) || (status >= 200 && status <= 399);
}

/** Whether the state holds nothing that must be kept. */
export function isPristine(state: BreakerState, now: number, policy: BreakerPolicy): boolean {
  const isOpen = viewBreaker(state, now).phase !== "closed";
  return !isOpen && (state.windowStartAt === undefined || now - state.windowStartAt > policy.windowMs);
}

/** When the breaker closes by itself. Infinity if it is not open. */
export function closesAt({ openedAt }: BreakerState): number {
  return openedAt === undefined ? Number.POSITIVE_INFINITY : openedAt + HOUR_MS;
}

function observe(
  state: BreakerState,
  isError: boolean,
  status: number,
  now: number,
  policy: BreakerPolicy,
): BreakerState {
  const isInWindow = state.windowStartAt !== undefined && now - state.windowStartAt <= policy.windowMs;
  const { errors, successes, consecutive } = isInWindow ? state : CLOSED;
  const next: BreakerState = {
    code: state.code,
    windowStartAt: isInWindow ? state.windowStartAt : now,
    errors: errors + (isError ? 1 : 0),
    successes: successes + (isError ? 0 : 1),
    consecutive: isError ? consecutive + 1 : 0,
  };
  return isError && isOverThreshold(next, policy) ? openBreaker(status, now) : next;
}

function isOverThreshold({ errors, successes, consecutive }: BreakerState, policy: BreakerPolicy): boolean {
  const samples = errors + successes;
  const percent = (100 * errors) / samples;
  return (
    (policy.consecutiveErrors > 0 && consecutive >= policy.consecutiveErrors) ||
    (policy.minSamples > 0 && samples >= policy.minSamples && percent >= policy.errorRatioPercent) ||
    (policy.fastMinSamples > 0 && samples >= policy.fastMinSamples && percent >= policy.fastErrorRatioPercent)
  );
}
