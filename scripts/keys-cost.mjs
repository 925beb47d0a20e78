/**
 * Measures the cost of a key that is used once (W7), as processor time, which varies much less on a busy machine than
 * wall time.
 *
 *   npx tsc -b && node scripts/keys-cost.mjs [rounds]
 *
 * Prints the lowest, median and highest of the rounds: nanoseconds of the whole process, including its garbage
 * collector, for each of 100,000 keys that is acquired and released, and then swept. The subjects take turns, each in
 * its own process.
 */
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const KEYS = 100_000;
const BATCHES = 12;
const WARM_UP = 4;

const subjects = {
  "async-lock": async () => {
    const AsyncLock = createRequire(new URL("../bench/package.json", import.meta.url))("async-lock");
    const lock = new AsyncLock({ maxPending: Infinity });
    const nothing = async () => {};
    return { acquire: (key) => lock.acquire(key, nothing), release: () => {}, sweep: () => {} };
  },
  KeyedSemaphore: async () => {
    const { KeyedSemaphore } = await import("../packages/core/dist/index.js");
    return ofSlots(new KeyedSemaphore(1), (keyed, key) => keyed.acquire(key));
  },
  SlotPool: async () => {
    const { SlotPool } = await import("../packages/core/dist/index.js");
    return ofSlots(new SlotPool({ max: 10, maxPerKey: 1 }), (pool, key) => pool.acquire(key));
  },
  Limiter: async () => {
    const { Limiter } = await import("../packages/core/dist/limiter/index.js");
    return ofSlots(new Limiter({ slots: 10, perKey: { slots: 1 } }), (limiter, key) => limiter.acquire({ key }));
  },
};

function ofSlots(owner, acquire) {
  return { acquire: (key) => acquire(owner, key), release: (slot) => slot.release(), sweep: () => owner.sweep?.(0) };
}

async function useAll({ acquire, release, sweep }, keys) {
  for (const key of keys) release(await acquire(key));
  sweep();
}

async function measure(name) {
  const subject = await subjects[name]();
  const keys = Array.from({ length: KEYS }, (_, index) => `user-${index}`);
  const figures = [];
  for (let batch = 0; batch < WARM_UP + BATCHES; batch++) {
    const before = process.cpuUsage();
    await useAll(subject, keys);
    const { user, system } = process.cpuUsage(before);
    if (batch >= WARM_UP) figures.push(((user + system) * 1e3) / KEYS);
  }
  return figures.sort((a, b) => a - b)[Math.floor((BATCHES - 1) / 4)];
}

const [argument = "5"] = process.argv.slice(2);
if (argument in subjects) {
  console.log(await measure(argument));
  process.exit(0);
}
const figures = Object.fromEntries(Object.keys(subjects).map((name) => [name, []]));
for (let round = 0; round < Number(argument); round++) {
  for (const name in subjects)
    figures[name].push(Number(execFileSync(process.execPath, [fileURLToPath(import.meta.url), name])));
}
for (const name in figures) {
  const sorted = figures[name].sort((a, b) => a - b).map(Math.round);
  console.log(`${name.padEnd(16)} ${sorted[0]}, ${sorted[sorted.length >> 1]}, ${sorted.at(-1)}`);
}
