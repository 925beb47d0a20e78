import { isSlotkeeperError } from "slotkeeper";
import { Limiter } from "slotkeeper/limiter";
import { FakeClock } from "slotkeeper/testing";
import type { Random } from "../../random/random.ts";
import { FuzzFailure, type FuzzTarget, ownMemory } from "../fuzz-target.ts";
import { oddValue, spoiled } from "../odd-values.ts";

const BATCH = 500;

/** Options that are right, to be spoiled. */
function optionsOf(random: Random): object {
  return {
    slots: random.int(1, 4),
    ...(random.chance(0.5) && { budgets: { tokens: { limit: random.int(1, 100), perMs: 1000, burst: 50 } } }),
    ...(random.chance(0.5) && { perKey: { slots: 1, budgets: { tokens: { limit: 5, perMs: 100 } } } }),
    ...(random.chance(0.3) && { levels: 3, ageAfterMs: 50 }),
    ...(random.chance(0.2) && { adaptive: { min: 1, start: 2 } }),
    ...(random.chance(0.2) && { ttlMs: 40 }),
    ...(random.chance(0.2) && { maxWaiters: 3 }),
  };
}

const callOf = (random: Random): object => ({
  ...(random.chance(0.5) && { key: `k${random.int(0, 2)}` }),
  ...(random.chance(0.5) && { cost: { tokens: random.int(0, 60) } }),
  ...(random.chance(0.3) && { level: random.int(0, 2) }),
  ...(random.chance(0.5) && { timeoutMs: random.int(0, 50) }),
});

/** What V8 says when code uses a value that it did not check. */
const OF_THE_ENGINE =
  /Cannot (?:read|convert|mix|destructure)|is not (?:a function|iterable|defined)|Maximum call stack/;

/** Misuse is a `TypeError` or a `RangeError` with a sentence of ours, an expected outcome a `SlotkeeperError`. */
function expectKnown(error: unknown, input: unknown): void {
  if (error instanceof FuzzFailure) throw error;
  const isKnown = error instanceof TypeError || error instanceof RangeError || isSlotkeeperError(error);
  if (!isKnown || OF_THE_ENGINE.test(String(error))) {
    throw new FuzzFailure(`Expected an error of our own, got ${String(error)}`, input, error);
  }
}

async function tryOne(random: Random): Promise<void> {
  const clock = new FakeClock(1e12);
  const options = random.chance(0.5) ? spoiled(random, optionsOf(random)) : optionsOf(random);
  let limiter: Limiter;
  try {
    limiter = new Limiter({ ...options, clock });
  } catch (error) {
    return expectKnown(error, options);
  }
  const slots = limiter.stats().capacity;
  const waiting: Promise<unknown>[] = [];
  for (let calls = random.int(1, 6); calls > 0; calls--) {
    const call = random.chance(0.4) ? spoiled(random, callOf(random)) : callOf(random);
    waiting.push(
      limiter
        .acquire(call as never)
        .then(
          (slot) => {
            if (random.chance(0.3)) slot.settle(spoiled(random, { tokens: 3 }, oddValue));
            if (random.chance(0.7)) slot.release();
          },
          (error: unknown) => expectKnown(error, { options, call }),
        )
        .catch((error: unknown) => expectKnown(error, { options, call })),
    );
    if (limiter.stats().inUse > slots)
      throw new FuzzFailure(`${limiter.stats().inUse} of ${slots} slots in use`, options);
  }
  await clock.advanceAsync(100);
  limiter.close();
  await clock.advanceAsync(10_000);
  await Promise.all(waiting);
}

export const limiterTarget: FuzzTarget = {
  name: "limiter",
  title: "options and calls of a limiter: no crash, no error of the engine, no waiter left, the limit holds",
  batch: BATCH,
  share: 3,
  open: () =>
    Promise.resolve({
      tryBatch: async (random) => {
        for (let at = 0; at < BATCH; at++) await tryOne(random);
      },
      memory: ownMemory,
      close: () => Promise.resolve(),
    }),
};
