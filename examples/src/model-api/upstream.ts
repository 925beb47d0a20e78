/**
 * A model API as its callers see it: a limit of requests and tokens per minute, and a limit of requests at a time,
 * which is not documented and changes. Requests above a limit are refused with 429 and Retry-After. Tokens are counted
 * as in real services: the estimate when a request arrives, the true number when it ends.
 */
import type { Clock } from "slotkeeper";

export interface Limits {
  readonly requestsPerMinute: number;
  readonly tokensPerMinute: number;
}

export interface Request {
  readonly key: string;
  readonly estimatedTokens: number;
  readonly tokens: number;
  readonly takesMs: number;
}

export type Answer =
  | { readonly status: 200; readonly tokens: number; readonly remainingTokens: number; readonly resetMs: number }
  | { readonly status: 429; readonly retryAfterMs: number };

const MINUTE = 60_000;
const REFUSAL_TAKES_MS = 30;
const RETRY_AFTER_MS = 500;

class Bucket {
  readonly #limit: number;
  #level: number;
  #at: number;

  constructor(limit: number, now: number) {
    this.#limit = limit;
    this.#level = limit;
    this.#at = now;
  }

  level(now: number): number {
    this.#level = Math.min(this.#limit, this.#level + ((now - this.#at) * this.#limit) / MINUTE);
    this.#at = now;
    return this.#level;
  }

  take(amount: number, now: number): void {
    this.#level = this.level(now) - amount;
  }
}

export class ModelApi {
  capacity: number;
  inFlight = 0;
  served = 0;
  refused = 0;
  /** Requests in flight × time, and tokens, since the beginning. */
  slotMs = 0;
  tokens = 0;
  readonly tokensByKey = new Map<string, number>();
  readonly #clock: Clock;
  readonly #requests: Bucket;
  readonly #tokens: Bucket;
  #at: number;

  constructor(clock: Clock, { requestsPerMinute, tokensPerMinute }: Limits, capacity: number) {
    this.#clock = clock;
    this.#at = clock.now();
    this.capacity = capacity;
    this.#requests = new Bucket(requestsPerMinute, this.#at);
    this.#tokens = new Bucket(tokensPerMinute, this.#at);
  }

  async call(request: Request): Promise<Answer> {
    const now = this.#clock.now();
    const isTooMuch = this.#requests.level(now) < 1 || this.#tokens.level(now) < request.estimatedTokens;
    if (isTooMuch || this.inFlight >= this.capacity) {
      this.refused++;
      await this.#pass(REFUSAL_TAKES_MS);
      return { status: 429, retryAfterMs: RETRY_AFTER_MS };
    }
    this.#requests.take(1, now);
    this.#tokens.take(request.estimatedTokens, now);
    this.#enter(1);
    await this.#pass(request.takesMs);
    this.#enter(-1);
    return this.#answer(request);
  }

  /** Brings the counters up to date. */
  measure(): void {
    this.#enter(0);
  }

  #answer({ key, estimatedTokens, tokens }: Request): Answer {
    this.served++;
    this.tokens += tokens;
    this.tokensByKey.set(key, (this.tokensByKey.get(key) ?? 0) + tokens);
    const now = this.#clock.now();
    this.#tokens.take(tokens - estimatedTokens, now);
    return { status: 200, tokens, remainingTokens: Math.max(0, Math.floor(this.#tokens.level(now))), resetMs: 1_000 };
  }

  #enter(more: number): void {
    const now = this.#clock.now();
    this.slotMs += this.inFlight * (now - this.#at);
    this.#at = now;
    this.inFlight += more;
  }

  #pass(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#clock.setTimer(resolve, ms));
  }
}
