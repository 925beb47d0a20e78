import { RateLimiter } from "limiter";
import type { Subject } from "../subject.ts";
import { ratesOnly } from "./rates-only.ts";

export const subject: Subject = {
  id: "limiter",
  safety: [],
  lacks: ratesOnly,
  makeRated: ({ limit, perMs }) => {
    const limiter = new RateLimiter({ tokensPerInterval: limit, interval: perMs });
    return {
      run: async (work) => {
        await limiter.removeTokens(1);
        return work();
      },
    };
  },
};
