import { Effect, Layer, ManagedRuntime, Semaphore } from "effect";
import { RateLimiter, Redis as RedisService } from "effect/persistence";
import { Redis } from "ioredis";
import type { OpenGate } from "../gate.ts";
import { LIMITS } from "../job.ts";

/**
 * Its Redis service on ioredis. The one of `@effect/platform-node` does the same, and needs Node 22. The limiter only
 * sends commands: it needs no subscriptions and no connections of its own.
 */
function redisLayer(address: string) {
  const client = new Redis(address);
  const unused = Effect.die(new Error("Expected the limiter to send commands only"));
  const send = <A>(command: string, ...args: readonly string[]) =>
    Effect.tryPromise({
      try: () => client.call(command, ...args) as Promise<A>,
      catch: (cause) => new RedisService.RedisError({ cause }),
    });
  return Layer.effect(RedisService.Redis, RedisService.make({ send, subscribe: () => unused, connect: unused }));
}

const TOKENS = {
  key: "tokens",
  algorithm: "token-bucket",
  onExceeded: "delay",
  window: "1 second",
  limit: LIMITS.tokensPerSecond,
} as const;

/** Its slots are semaphores of one process, so each process gets its part of every limit. The tokens are in Redis. */
const PROCESSES = 3;
const partOf = (limit: number) => Semaphore.makeUnsafe(Math.max(1, Math.floor(limit / PROCESSES)));

export const openEffect: OpenGate = async (address, work) => {
  const store = RateLimiter.layerStoreRedis().pipe(Layer.provide(redisLayer(address)));
  const runtime = ManagedRuntime.make(RateLimiter.layer.pipe(Layer.provide(store)));
  const withLimiter = await runtime.runPromise(RateLimiter.makeWithRateLimiter);
  const total = partOf(LIMITS.total);
  const tenants = new Map<string, Semaphore.Semaphore>();
  const users = new Map<string, Semaphore.Semaphore>();
  const of = (map: Map<string, Semaphore.Semaphore>, name: string, limit: number) => {
    const semaphore = map.get(name) ?? partOf(limit);
    map.set(name, semaphore);
    return semaphore;
  };
  return {
    async run(job) {
      const limited = withLimiter({ ...TOKENS, tokens: job.estimate })(Effect.promise(() => work(job)));
      const inTenant = of(tenants, job.tenant, LIMITS.tenant).withPermit(total.withPermit(limited));
      await runtime.runPromise(of(users, job.user, LIMITS.user).withPermit(inTenant));
    },
  };
};
