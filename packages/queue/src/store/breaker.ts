import type { BreakerPolicy } from "../options.ts";
import type { BreakerView } from "./slot-store.ts";

/** Everything a breaker knows, by value. */
export interface BreakerState {
  readonly openedAt?: number;
  readonly code: number;
  readonly windowStartAt?: number;
  readonly errors: number;
  readonly successes: number;
  readonly consecutive: number;
}

/**
 * Stops asking a host that answers with errors.
 *
 * | state     | event                                   | next                                            |
 * |-----------|-----------------------------------------|-------------------------------------------------|
 * | closed    | a threshold is met in the window        | open, since now                                 |
 * | open      | any report                              | open: late answers of old requests teach nothing |
 * | open      | `openMs` passed                         | half open (derived from the time, not stored)   |
 * | half open | success                                 | closed                                          |
 * | half open | error                                   | open, since now                                 |
 * | half open | a probe ends with outcome unknown       | half open: the next probe goes                  |
 * | half open | no error for `openMs`                   | closed                                          |
 *
 * How long open lasts is the reader's: a session may bring its own window. All counts lie inside one observation
 * window; the first report after it starts the next.
 */
export class Breaker {
  #openedAt: number | undefined;
  #code = 0;
  #windowStartAt = Number.NEGATIVE_INFINITY;
  #errors = 0;
  #successes = 0;
  #consecutive = 0;

  get state(): BreakerState {
    return {
      ...(this.#openedAt === undefined ? {} : { openedAt: this.#openedAt }),
      ...(this.#windowStartAt === Number.NEGATIVE_INFINITY ? {} : { windowStartAt: this.#windowStartAt }),
      code: this.#code,
      errors: this.#errors,
      successes: this.#successes,
      consecutive: this.#consecutive,
    };
  }

  restore(state: BreakerState): void {
    this.#openedAt = state.openedAt;
    this.#code = state.code;
    this.#windowStartAt = state.windowStartAt ?? Number.NEGATIVE_INFINITY;
    this.#errors = state.errors;
    this.#successes = state.successes;
    this.#consecutive = state.consecutive;
  }

  /** Nothing would be lost by forgetting it. */
  isPristine(now: number, policy: BreakerPolicy): boolean {
    this.#settle(now, policy);
    return this.#openedAt === undefined && now - this.#windowStartAt > policy.windowMs;
  }

  view(now: number, policy: BreakerPolicy): BreakerView {
    this.#settle(now, policy);
    if (this.#openedAt === undefined) return { phase: "closed" };
    return { phase: "open", code: this.#code, openForMs: now - this.#openedAt };
  }

  /**
   * `isProbe`: the answer of a probe counts as one of a half-open breaker whatever the reader's window was. Returns
   * whether the status is one that counts.
   */
  report(status: number, now: number, policy: BreakerPolicy, isProbe: boolean): boolean {
    const isError = policy.protectHttpCodes.includes(status);
    if (!isError && !(status >= 200 && status <= 399)) return false;
    this.#settle(now, policy);
    if (this.#openedAt === undefined) this.#observe(isError, status, now, policy);
    else if (isProbe || now - this.#openedAt >= policy.openMs) {
      if (isError) this.open(status, now);
      else this.close();
    }
    return true;
  }

  open(code: number, now: number): void {
    this.close();
    this.#openedAt = now;
    this.#code = code;
  }

  close(): void {
    this.#openedAt = undefined;
    this.#windowStartAt = Number.NEGATIVE_INFINITY;
    this.#errors = 0;
    this.#successes = 0;
    this.#consecutive = 0;
  }

  #settle(now: number, policy: BreakerPolicy): void {
    if (this.#openedAt !== undefined && now - this.#openedAt >= 2 * policy.openMs) this.close();
  }

  #observe(isError: boolean, status: number, now: number, policy: BreakerPolicy): void {
    if (now - this.#windowStartAt > policy.windowMs) {
      this.close();
      this.#windowStartAt = now;
    }
    if (isError) this.#errors++;
    else this.#successes++;
    this.#consecutive = isError ? this.#consecutive + 1 : 0;
    if (this.#isTripped(policy)) this.open(status, now);
  }

  #isTripped(policy: BreakerPolicy): boolean {
    if (this.#consecutive === 0) return false;
    const total = this.#errors + this.#successes;
    const percent = (100 * this.#errors) / total;
    return (
      (policy.consecutiveErrors > 0 && this.#consecutive >= policy.consecutiveErrors) ||
      (policy.minSamples > 0 && total >= policy.minSamples && percent >= policy.errorRatioPercent) ||
      (policy.fastMinSamples > 0 && total >= policy.fastMinSamples && percent >= policy.fastErrorRatioPercent)
    );
  }
}

/** How the breaker stands for a reader with its own window. */
export function phaseFor(view: BreakerView, openMs: number): "closed" | "open" | "half-open" {
  if (view.phase === "closed") return "closed";
  return view.openForMs < openMs ? "open" : "half-open";
}
