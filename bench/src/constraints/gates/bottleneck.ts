import Bottleneck from "bottleneck";
import { Redis } from "ioredis";
import type { OpenGate } from "../gate.ts";
import { LEASE_MS, LIMITS } from "../job.ts";

/** The reservoir can be refilled every 250 ms, no more often. */
const REFILL_MS = 250;
const REFILL = (LIMITS.tokensPerSecond * REFILL_MS) / 1000;

/**
 * One limiter for each limit, one inside the other: a weight counts for `maxConcurrent` and for the reservoir, so the
 * slots and the tokens cannot be in one limiter. Every job has an `expiration`, as its documentation strongly recommends.
 */
export const openBottleneck: OpenGate = async (address, work) => {
  const connection = new Bottleneck.IORedisConnection({ client: new Redis(address) });
  const users = new Bottleneck.Group({ id: "user", connection, maxConcurrent: LIMITS.user });
  const tenants = new Bottleneck.Group({ id: "tenant", connection, maxConcurrent: LIMITS.tenant });
  const total = new Bottleneck({ id: "total", connection, maxConcurrent: LIMITS.total });
  const tokens = new Bottleneck({
    id: "tokens",
    connection,
    reservoir: LIMITS.burst,
    reservoirIncreaseAmount: REFILL,
    reservoirIncreaseInterval: REFILL_MS,
    reservoirIncreaseMaximum: LIMITS.burst,
  });
  const slot = { expiration: LEASE_MS };
  return {
    async run(job) {
      const worked = () => tokens.schedule({ ...slot, weight: job.estimate }, () => work(job));
      const inTotal = () => total.schedule(slot, worked);
      const inTenant = () => tenants.key(job.tenant).schedule(slot, inTotal);
      const cost = await users.key(job.user).schedule(slot, inTenant);
      await tokens.incrementReservoir(job.estimate - cost);
    },
  };
};
