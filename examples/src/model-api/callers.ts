/** Two ways to call a model API: through a `Limiter`, and with p-limit and a retry after 429. */
import pLimit from "p-limit";
import type { Clock } from "slotkeeper";
import { Limiter } from "slotkeeper/limiter";
import type { Answer, Limits, ModelApi, Request } from "./upstream.ts";

/** Sends a request until it is answered. */
export type Call = (request: Request) => Promise<void>;

export interface Client {
  readonly call: Call;
  /** How many requests may be in flight now. */
  readonly slots: () => number;
}

const MINUTE = 60_000;
const isOverload = ({ value }: { value?: Answer }): false | { retryAfterMs: number } =>
  value?.status === 429 && { retryAfterMs: value.retryAfterMs };

/** The documented limits of the service become budgets. The number of requests at a time is found by trying. */
export function withLimiter(clock: Clock, api: ModelApi, { requestsPerMinute, tokensPerMinute }: Limits): Client {
  const limiter = new Limiter({
    slots: 150,
    adaptive: { min: 4, start: 60 },
    budgets: {
      requests: { limit: requestsPerMinute, perMs: MINUTE, burst: requestsPerMinute / 10 },
      tokens: { limit: tokensPerMinute, perMs: MINUTE, burst: tokensPerMinute / 10 },
    },
    perKey: {},
    clock,
  });
  const send = (request: Request): Promise<Answer> =>
    limiter.run(
      async (slot) => {
        const answer = await api.call(request);
        slot.settle({ tokens: answer.status === 200 ? answer.tokens : 0 });
        return answer;
      },
      { key: request.key, cost: { tokens: request.estimatedTokens }, isOverload },
    );
  const call: Call = async (request) => {
    for (;;) {
      const answer = await send(request);
      if (answer.status === 429) continue;
      limiter.learn("tokens", { remaining: answer.remainingTokens, resetMs: answer.resetMs });
      return;
    }
  };
  return { call, slots: () => limiter.capacity };
}

/** The usual way: a guessed number at a time, and another try after the time that the service asks for. */
export function withRetries(clock: Clock, api: ModelApi, guess: number): Client {
  const limit = pLimit(guess);
  const call: Call = (request) =>
    limit(async () => {
      for (let attempt = 0; ; attempt++) {
        const answer = await api.call(request);
        if (answer.status === 200) return;
        const waitMs = answer.retryAfterMs * 2 ** Math.min(attempt, 4);
        await new Promise<void>((resolve) => void clock.setTimer(resolve, waitMs));
      }
    });
  return { call, slots: () => guess };
}
