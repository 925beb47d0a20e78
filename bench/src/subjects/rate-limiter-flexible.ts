import { RateLimiterMemory } from "rate-limiter-flexible";
import type { Subject } from "../subject.ts";
import { ratesOnly } from "./rates-only.ts";

export const subject: Subject = {
  id: "rate-limiter-flexible",
  safety: [],
  lacks: ratesOnly,
  makeRated: ({ limit, perMs }) => {
    const limiter = new RateLimiterMemory({ points: limit, duration: perMs / 1000 });
    return {
      run: async (work) => {
        await limiter.consume("key");
        return work();
      },
      waits: "refuses where others wait",
    };
  },
};
